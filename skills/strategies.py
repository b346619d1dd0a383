"""Learns which strategy, and how many rounds, suit which questions.

The answers that several strategies gave to the same questions are compared, for each type of
question. What answered most of them rightly becomes a skill, which is routed, refined and banned
like any other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from domain import faults
from domain.errors import InputError
from domain.settings import AskSettings
from domain.skills import JudgedTrajectory, Pattern, Policy, Signal, Skill
from skills.writer import Words, common_words, description, review
from store.queries import learning
from store.queries import skills as stored
from store.queries.learning import JudgedRun, judged_runs

if TYPE_CHECKING:
    from store.database import Store

LEAST_QUESTIONS = 8
"""Questions that strategies must share to be compared: as many as make a pattern (section 3)."""


@dataclass(frozen=True)
class BestStrategy:
    """The strategy that answered most of the compared questions rightly.

    ``rounds``: as many as its right answers took at most. ``runs`` are all compared answers.
    """

    strategy: str
    rounds: int
    runs: tuple[JudgedRun, ...]


def learn_strategies(store: Store, words: Words) -> tuple[list[Skill], list[str]]:
    """Make or refine the skills that choose a strategy.

    Returns:
        The new and changed skills, and for each that does not pass the review, why.
    """
    with store.begin() as session:
        runs = judged_runs(session)
    written: list[Skill] = []
    refused: list[str] = []
    for kind in sorted({run.question_type for run in runs}):
        best = best_strategy([run for run in runs if run.question_type == kind])
        if best is None:
            continue
        pattern = Pattern(signal=Signal.STRATEGY, question_type=kind)
        try:
            written += _stored(store, pattern, best, words)
        except InputError as error:
            refused.append(f"{pattern.name}: {error}")
    return written, refused


def best_strategy(
    runs: Iterable[JudgedRun], default: str = AskSettings().strategy
) -> BestStrategy | None:
    """Return the strategy that answered most of the same questions rightly.

    Of equals the default counts as the best, then the one that took fewer rounds.

    Args:
        runs: judged answers to questions of one type; the last one by a strategy counts.
        default: the strategy that is asked where nothing was learned.

    Returns:
        None where no two strategies share enough questions, or none answered any rightly.
    """
    latest = {(run.strategy, run.asked): run for run in runs}
    asked: dict[str, frozenset[str]] = {}
    for strategy, question in latest:
        asked[strategy] = asked.get(strategy, frozenset()) | {question}
    # Those with the most questions come first; one that leaves too few in common is left out.
    strategies: list[str] = []
    in_all: frozenset[str] = frozenset()
    for strategy in sorted(asked, key=lambda one: (-len(asked[one]), one)):
        common = asked[strategy] & in_all if strategies else asked[strategy]
        if len(common) >= LEAST_QUESTIONS:
            strategies.append(strategy)
            in_all = common
    shared = sorted(in_all)
    if len(strategies) < 2:
        return None
    compared = {one: [latest[one, question] for question in shared] for one in strategies}

    def merit(strategy: str) -> tuple[int, bool, int, str]:
        answers = compared[strategy]
        rounds = sum(run.rounds for run in answers)
        return -sum(run.right for run in answers), strategy != default, rounds, strategy

    best = min(strategies, key=merit)
    rounds = [run.rounds for run in compared[best] if run.right]
    if not rounds:
        return None
    every = tuple(run for one in strategies for run in compared[one])
    return BestStrategy(best, max([1, *rounds]), every)


def _stored(store: Store, pattern: Pattern, best: BestStrategy, words: Words) -> list[Skill]:
    """Store the skill of a pattern unless it chooses the same already.

    Raises:
        InputError: it does not pass the review.
    """
    with store.begin() as session:
        known = learning.latest_skill_version(session, pattern.name)
        if known is not None and known.policy == _policy(best):
            return []
        skill = strategy_skill(pattern, best, words, version=known.version + 1 if known else 1)
        trajectories = [run.trajectory for run in best.runs]
        answers = learning.answers_of(session, trajectories)
        if found := review(skill, stored.names_of_people(session), answers):
            raise InputError("; ".join(found))
        stored.add_version(session, skill)
        runs = best.runs
        for run in runs:
            judged = JudgedTrajectory(
                trajectory=run.trajectory, question_type=run.question_type, right=run.right
            )
            learning.add_observations(session, judged, [pattern.signal])
        learning.link_observations(session, pattern, [run.trajectory for run in runs], skill)
    faults.fault_point(faults.FaultPoint.SKILL_WRITTEN)
    return [skill]


def strategy_skill(
    pattern: Pattern, best: BestStrategy, words: Words, *, version: int = 1
) -> Skill:
    """Word the skill that chooses a strategy for the questions of a pattern."""
    questions = list({run.asked: run.text for run in best.runs}.values())
    triggers = common_words(questions, words)
    rounds = "one round" if best.rounds == 1 else f"{best.rounds} rounds"
    return Skill(
        name=pattern.name,
        version=version,
        topic=pattern.signal.topic,
        tone=pattern.signal.tone,
        description=description(pattern, triggers),
        triggers=triggers,
        instructions=(f"Ask {best.strategy}, in at most {rounds}: it answered most rightly.",),
        policy=_policy(best),
    )


def _policy(best: BestStrategy) -> Policy:
    return Policy(strategy=best.strategy, rounds=best.rounds)
