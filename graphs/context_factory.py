"""Makes the context of a run, as the profile says."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from agent.model_calls import Calls, RunBudget, ToolCalls
from agent.reasoners.llm import LlmReasoner
from agent.reasoners.local import MOMENTS, LocalReasoner, ReadingReasoner, worded_chapter
from agent.reasoners.port import reads_cards
from agent.recorder import Recorder
from agent.run_context import RunContext
from agent.strategy import (
    AUTO,
    PolicyParts,
    RunNamedTool,
    RunTool,
    Strategy,
    Tool,
    ToolArguments,
    ToolLoop,
    ToolUse,
)
from domain.calls import CallRecord
from domain.errors import InputError, NotFound
from domain.memories import MemoryView
from domain.moments import ResolvedRefs, Retrieval
from domain.settings import HOUR_MS, AskSettings
from domain.skills import StrategyChoice
from domain.time import format_clock
from domain.trajectory import Setup
from domain.words import marked
from models.chat import Replay, Sink, StructuredChat
from models.text_endpoint import recorded_embeddings
from retrieval.built_views import built_part, titles_of
from retrieval.quotes_and_citations import cite
from retrieval.retrievers import Retrievers
from skills.library import SkillLibrary
from store.queries.builds import build_writers, built_encoders
from store.queries.characters import people_as_of
from store.queries.clips import end_of_memory
from store.queries.outline import contents_of
from store.queries.percepts import title_of
from strategies.registry import find_strategy

if TYPE_CHECKING:
    from domain.asking import Question
    from models.toolbox import Toolbox
    from store.database import Store

MOST_CONTENTS = 5
"""Videos whose contents are told, at most."""
MIN_LABELS, LABELS_AN_HOUR = 12, 30
"""Events told of each video, about 20 tokens each."""


MakeContext = Callable[[MemoryView, Recorder, RunBudget, AskSettings], RunContext]
"""Makes the context of a run over a view, with the settings on its record."""


class ProfileContexts:
    """Contexts with the profile's reasoner, its retrievers and open tools, which all runs share."""

    def __init__(self, store: Store, toolbox: Toolbox) -> None:
        self._store, self._toolbox = store, toolbox
        self._memory = Retrievers(store, toolbox, toolbox.profile.settings)
        self._tools = StrategyTools(store, toolbox)
        self._skills = SkillLibrary(store, toolbox)

    def __call__(
        self, view: MemoryView, recorder: Recorder, budget: RunBudget, settings: AskSettings
    ) -> RunContext:
        """Make the context of a run over ``view`` with the settings on its record."""
        setup, strategy = recorder.setup, find_strategy(settings.strategy)
        calls = self._calls(recorder, budget)
        reasoner = reasoner_of(self._toolbox.profile.answering, calls, settings, self._store)
        reads, words = reads_cards(reasoner.name), reasoner.name == ReadingReasoner.name

        def word(lines: Sequence[str]) -> tuple[str, str] | None:
            return worded_chapter(ToolCalls(calls, recorder.round), lines) if calls else None

        return RunContext(
            reasoner=reasoner,
            memory=self._memory.restricted_to(settings.memory, word if words else None),
            cite=lambda refs: self._cite(view, refs),
            settings=settings,
            recorder=recorder,
            budget=budget,
            moments=settings.moments if reads else MOMENTS,
            contents=self._contents(view, setup, reads=reads and strategy.policy is None),
            people=setup.people if setup else self._people(view),
            skills=self._skills,
            languages=setup.languages if setup else self._toolbox.profile.search_languages,
            tool_loop=tool_loop_of(
                strategy,
                PolicyParts(
                    reasoner,
                    calls if reads else None,
                    budget,
                    settings,
                    self._store.blobs.get,
                    setup.image_model if setup else self._toolbox.profile.image_model,
                ),
                self._tools,
                setup.tools if setup else strategy.tools_for(self._toolbox.profile),
            ),
            writers=setup.writers if setup else self._writers(strategy, view),
            unbuilt=partial(self._tools.without_windows, strategy, view),
        )

    def _cite(self, view: MemoryView, refs: Sequence[str]) -> ResolvedRefs:
        with self._store.begin() as session:
            return cite(session, view, refs)

    def _writers(self, strategy: Strategy, view: MemoryView) -> tuple[str, ...]:
        with self._store.begin() as session:
            if strategy.windows is not None:
                return strategy.windows().writers(session, view.videos)
            return build_writers(session, strategy.memory, view.videos)

    def _people(self, view: MemoryView) -> tuple[tuple[str, str], ...]:
        """Return names by tag; none for several videos, since tags are a video's own."""
        if len(view.scopes) > 1:
            return ()
        with self._store.begin() as session:
            people = people_as_of(session, view.scopes[0])
        return tuple((tag, person.name) for person in people if person.name for tag in person.tags)

    def _contents(self, view: MemoryView, setup: Setup | None, *, reads: bool) -> tuple[str, ...]:
        """Return what happens when in a few videos, within some tokens an hour of video."""
        if setup is not None or not reads or len(view.scopes) > MOST_CONTENTS:
            return setup.contents if setup else ()
        lines = list[str]()
        with self._store.begin() as session:
            for scope in view.scopes:
                ends = end_of_memory(session, scope.video, scope.last_clip)
                lines.append(f"{title_of(session, scope.video)}, {format_clock(ends)}")
                most = MIN_LABELS + LABELS_AN_HOUR * ends // HOUR_MS
                events = contents_of(session, scope.video, scope.last_clip, most)
                lines += [f"{one.span} {one.label}" for one in events]
        return tuple(lines)

    def _calls(self, recorder: Recorder, budget: RunBudget) -> Calls | None:
        """Return the calls of a run to the profile's language model; None without one."""
        role = ROLES.get(self._toolbox.profile.answering)
        if role is None:
            return None
        toolbox, setup = self._toolbox, recorder.setup
        room = setup.room if setup else toolbox.profile.chat_for(role).room

        def open_chat(sink: Sink, replay: Replay) -> StructuredChat:
            return toolbox.chat(role, sink, replay, live=True)

        return Calls(self._store, recorder, budget, open_chat, room)


ROLES = {"llm": "reasoner", "reader": "reader"}
"""The roles of the language models that reasoners ask, by their kind."""


def reasoner_of(
    kind: str, calls: Calls | None, settings: AskSettings, store: Store
) -> LocalReasoner | LlmReasoner:
    """Return the reasoner of a kind: rules, rules with a reader, or a language model.

    Raises:
        InputError: there is none of that kind, or no calls for it.
    """
    if kind == "local":
        return LocalReasoner()
    if calls and kind == "reader":
        return ReadingReasoner(calls)
    if calls and kind == "llm":
        return LlmReasoner(calls, settings, store.blobs.get)
    raise InputError(f"a reasoner of the kind {kind!r} cannot be replayed")


class StrategyTools:
    """The tools of strategies on a store, opened when one is first used. Thread-safe."""

    def __init__(self, store: Store, toolbox: Toolbox) -> None:
        self._store, self._toolbox = store, toolbox
        self._open: dict[str, Mapping[str, RunTool]] = {}
        self._lock = threading.Lock()

    def __call__(
        self,
        strategy: Strategy,
        tool: Tool,
        view: MemoryView,
        arguments: ToolArguments,
        use: ToolUse,
    ) -> Retrieval:
        """Return what a tool finds; see ``agent.strategy.RunTool``."""
        with self._lock:
            if strategy.memory not in self._open:
                self._open[strategy.memory] = strategy.open_tools(self._store, self._toolbox)
        unbuilt: tuple[str, ...] = ()
        if strategy.windows is not None:
            # With tables of its own it also searches the lines of videos without them.
            unbuilt = self.without_windows(strategy, view)
        elif strategy.builder is not None and len(view.scopes) > 1:
            with self._store.begin() as session:
                text = self._toolbox.text.name
                view, unbuilt = built_part(session, view, strategy.memory, text)
        found = self._open[strategy.memory][tool.name](view, arguments, use)
        return found.model_copy(update={"unbuilt": unbuilt}) if unbuilt else found

    def without_windows(self, strategy: Strategy, view: MemoryView) -> tuple[str, ...]:
        """Return the titles of videos of which none of the strategy's windows is built."""
        if strategy.windows is None:
            return ()
        memory = self._toolbox.profile.settings.memory
        with self._store.begin() as session:
            unbuilt = strategy.windows().unbuilt(session, view.videos, memory)
            return titles_of(session, unbuilt) if unbuilt else ()


def tool_loop_of(
    strategy: Strategy, parts: PolicyParts, run_tool: RunNamedTool, offered: tuple[str, ...]
) -> ToolLoop | None:
    """Return what the tool loop uses; None for a strategy on another machine.

    ``offered`` are the names of the tools that the policy may use, where they are not switched off;
    empty: all.
    """
    if strategy.policy is None:
        return None
    tools = tuple(t for t in strategy.switched_on if not offered or t.name in offered)
    policy = strategy.policy(replace(parts, tools=tools, without=strategy.without))
    names = tuple(tool.name for tool in tools)
    return ToolLoop(strategy, policy, run_tool, parts.calls, names)


# Chooses the strategy of a question by what was learned, where none is named.


@dataclass(frozen=True)
class Chosen:
    """The strategy of a question, and the settings to ask with.

    ``choice`` is None where the strategy was named; ``calls`` are those of the text encoder.
    """

    strategy: Strategy
    settings: AskSettings
    choice: StrategyChoice | None = None
    calls: tuple[CallRecord, ...] = ()


def choose_strategy(
    store: Store, skills: SkillLibrary, name: str, question: Question, settings: AskSettings
) -> Chosen:
    """Return the strategy of that name; for ``auto`` the one that was learned.

    Raises:
        NotFound: there is no such strategy.
    """
    if name != AUTO:
        return Chosen(find_strategy(name), settings)
    calls: list[CallRecord] = []
    with recorded_embeddings(calls.append):
        routed = skills.route_strategies(question.text, settings.skill_cosine)
    reasons: list[str] = []
    for skill in routed:
        try:
            strategy = find_strategy(skill.policy.strategy or "")
            if strategy.builder is not None:
                with store.begin() as session:
                    built = built_encoders(session, strategy.memory, question.videos)
                if missing := len(set(question.videos) - built.keys()):
                    one, some = marked("of this video"), marked(f"of {missing} of the videos")
                    of = one if len(question.videos) == 1 else some
                    raise InputError(f"the memory of {strategy.memory} is not built {of}")
        except (InputError, NotFound) as error:
            reasons.append(f"{skill.name}: {error}")
            continue
        limit = f", at most {skill.policy.rounds} rounds" if skill.policy.rounds else ""
        matched = f"skill {skill.name}, {skill.score:.2f}{limit}"
        why = f"{strategy.name} answered questions like this best ({matched})"
        choice = StrategyChoice(skill=skill, why=why)
        limited = settings
        if skill.policy.rounds is not None:  # No more than it says, nor than the strategy has.
            rounds = min(strategy.settings_from(settings).rounds, skill.policy.rounds)
            limited = settings.model_copy(update={"rounds": rounds})
        return Chosen(strategy, limited, choice, tuple(calls))
    # No skill that chooses a strategy is close to the question, or the memory of the learned
    # strategy is not built of all videos.
    named = settings.strategy
    default = find_strategy(AskSettings().strategy if named == AUTO else named)
    why = "; ".join(reasons) or "no strategy was learned for questions like this"
    choice = StrategyChoice(why=f"{default.name} is the default: {why}")
    return Chosen(default, settings, choice, tuple(calls))
