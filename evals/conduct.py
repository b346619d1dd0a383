"""The conduct of a reasoner, right or wrong: valid actions, and citations that exist."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from string import ascii_uppercase
from typing import Self

from sqlalchemy.orm import Session

from agent.harness.correct import BY_HARNESS
from domain.asking import Answer
from domain.trajectory import Acted, Ended, Event, Guarded, ModelCalled, QuestionAsked
from evals.bars import Bar
from retrieval.citations import cite
from store.database import Store
from store.queries.trajectories import events_of

VALID = 95.0
"""Percent of rounds in which the reasoner's own action must be accepted."""


@dataclass(frozen=True)
class Conduct:
    """Counts over some trajectories.

    ``rounds``: those with an action of the reasoner; ``valid``: those in which its own action was
    accepted within the allowed retries. ``citations``: all that were given; ``resolved``: those
    that are rows of the visible memory. ``choices``: answers to questions with options;
    ``options``: those that are one of them. ``tokens_in``: the input of all model calls.
    """

    answers: int = 0
    rounds: int = 0
    valid: int = 0
    citations: int = 0
    resolved: int = 0
    choices: int = 0
    options: int = 0
    tokens_in: int = 0

    def __add__(self, other: Self) -> Conduct:
        return Conduct(
            **{
                field.name: getattr(self, field.name) + getattr(other, field.name)
                for field in fields(self)
            }
        )

    def bars(self, questions: int) -> list[Bar]:
        """Return the bars to reach."""
        return [
            Bar("questions answered", float(self.answers), float(questions)),
            Bar("rounds with a valid action, percent", _percent(self.valid, self.rounds), VALID),
            Bar("citations that resolve, percent", _percent(self.resolved, self.citations), 100.0),
            Bar("choices that are an option, percent", _percent(self.options, self.choices), 100.0),
        ]


def _percent(part: int, total: int) -> float:
    """Return the percentage; 100 of nothing."""
    return 100.0 * part / total if total else 100.0


def conduct(store: Store, trajectories: Iterable[str], retries: int) -> Conduct:
    """Count the reasoner's conduct in these trajectories; each citation is looked up again."""
    total = Conduct()
    for name in trajectories:
        with store.begin() as session:
            events = events_of(session, name)
            total += conduct_in(events, retries) + _cited(session, events)
    return total


def conduct_in(events: Sequence[Event], retries: int) -> Conduct:
    """Count the rounds and the choice of one trajectory."""
    acted_rounds = {event.round for event in events if isinstance(event, Acted)}
    valid = {
        acted.round
        for acted in _accepted(events)
        if (acted.action is not None and acted.action.reason != BY_HARNESS)
        and acted.attempt <= retries
    }
    question_event, answer = _question_event(events), _answer(events)
    letters = ascii_uppercase[: len(question_event.question.options)]
    return Conduct(
        answers=int(answer is not None),
        rounds=len(acted_rounds),
        valid=len(valid),
        choices=int(bool(letters) and answer is not None),
        options=int(bool(letters) and answer is not None and answer.option in tuple(letters)),
        tokens_in=sum(event.tokens_in for event in events if isinstance(event, ModelCalled)),
    )


def _accepted(events: Sequence[Event]) -> list[Acted]:
    """Return the actions that the guard accepted: it judges the one before it."""
    pairs = (
        (events[position - 1], guarded)
        for position, guarded in enumerate(events)
        if isinstance(guarded, Guarded)
    )
    return [acted for acted, guarded in pairs if guarded.accepted and isinstance(acted, Acted)]


def _question_event(events: Sequence[Event]) -> QuestionAsked:
    return next(event for event in events if isinstance(event, QuestionAsked))


def _answer(events: Sequence[Event]) -> Answer | None:
    return next((event.answer for event in events if isinstance(event, Ended)), None)


def _cited(session: Session, events: Sequence[Event]) -> Conduct:
    """Count the answer's citations, and those that the store returns word for word."""
    answer = _answer(events)
    cited = answer.citations if answer else ()
    unscored = [citation.unscored for citation in cited]
    resolved = cite(
        session, _question_event(events).view, [citation.ref for citation in unscored]
    ).citations
    return Conduct(citations=len(unscored), resolved=len(set(unscored) & set(resolved)))
