"""Chooses the strategy of a question by what was learned, where none is named."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.strategy import AUTO, Strategy
from domain.calls import CallRecord
from domain.errors import InputError, NotFound
from domain.marked import marked
from domain.settings import AskSettings
from domain.skills import RoutedSkill, StrategyChoice
from models.text_endpoint import recorded_embeddings
from skills.library import SkillLibrary
from store.queries.builds import built_encoders
from strategies.registry import find_strategy

if TYPE_CHECKING:
    from domain.asking import Question
    from models.toolbox import Toolbox
    from store.database import Store


@dataclass(frozen=True)
class Chosen:
    """The strategy of a question, and the settings to ask with.

    ``choice`` is None where the strategy was named; ``calls`` are those of the text encoder.
    """

    strategy: Strategy
    settings: AskSettings
    choice: StrategyChoice | None = None
    calls: tuple[CallRecord, ...] = ()


class StrategyChooser:
    """Chooses strategies for the questions of a library.

    Args:
        store: the memory, and the skills.
        toolbox: has the text encoder.
    """

    def __init__(self, store: Store, toolbox: Toolbox) -> None:
        self._store, self._skills = store, SkillLibrary(store, toolbox)

    def choose(self, name: str, question: Question, settings: AskSettings) -> Chosen:
        """Return the strategy of that name; for ``auto`` the one that was learned.

        The strategy of the settings, else the default, is taken where no skill that chooses a
        strategy is close to the question, and where the memory of a learned strategy is not built
        of all videos.

        Raises:
            NotFound: there is no such strategy.
        """
        if name != AUTO:
            return Chosen(find_strategy(name), settings)
        calls: list[CallRecord] = []
        with recorded_embeddings(calls.append):
            routed = self._skills.route_strategies(question.text, settings.skill_cosine)
        reasons: list[str] = []
        for skill in routed:
            try:
                strategy = self._usable(skill, question.videos)
            except (InputError, NotFound) as error:
                reasons.append(f"{skill.name}: {error}")
                continue
            why = f"{strategy.name} answered questions like this best ({_matched(skill)})"
            choice = StrategyChoice(skill=skill, why=why)
            limited = _limited(settings, strategy, skill)
            return Chosen(strategy, limited, choice, tuple(calls))
        default = default_strategy(settings)
        why = "; ".join(reasons) or "no strategy was learned for questions like this"
        choice = StrategyChoice(why=f"{default.name} is the default: {why}")
        return Chosen(default, settings, choice, tuple(calls))

    def _usable(self, skill: RoutedSkill, videos: tuple[str, ...]) -> Strategy:
        """Return the strategy that a skill chooses.

        Raises:
            NotFound: there is no such strategy any more.
            InputError: its memory is not built of all videos.
        """
        strategy = find_strategy(skill.policy.strategy or "")
        if strategy.builder is not None:
            with self._store.begin() as session:
                built = built_encoders(session, strategy.memory, videos)
            if missing := len(set(videos) - built.keys()):
                one, some = marked("of this video"), marked(f"of {missing} of the videos")
                of = one if len(videos) == 1 else some
                raise InputError(f"the memory of {strategy.memory} is not built {of}")
        return strategy


def _matched(skill: RoutedSkill) -> str:
    limit = f", at most {skill.policy.rounds} rounds" if skill.policy.rounds else ""
    return f"skill {skill.name}, {skill.score:.2f}{limit}"


def default_strategy(settings: AskSettings) -> Strategy:
    """Return the strategy that ``auto`` asks by where nothing was learned."""
    named = settings.strategy
    return find_strategy(AskSettings().strategy if named == AUTO else named)


def _limited(settings: AskSettings, strategy: Strategy, skill: RoutedSkill) -> AskSettings:
    """Return the settings with no more rounds than a skill says, nor than the strategy has."""
    if skill.policy.rounds is None:
        return settings
    rounds = min(strategy.settings_from(settings).rounds, skill.policy.rounds)
    return settings.model_copy(update={"rounds": rounds})
