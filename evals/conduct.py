"""How a reasoner behaves, right or wrong: do its replies keep the rules, do its citations exist?"""

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
"""Percent of rounds in which an action of the reasoner itself must be accepted."""


@dataclass(frozen=True)
class Conduct:
    """What some trajectories come to.

    ``rounds`` are those in which the reasoner was heard, ``valid`` those in which an action of its
    own was accepted after at most the allowed retries. ``citations`` are all that were given,
    ``resolved`` those that are rows of the memory as it could be seen. ``choices`` are the answers
    to questions with options, ``options`` those of them that are one. ``tokens_in`` is the input
    of all model calls.
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
            **{one.name: getattr(self, one.name) + getattr(other, one.name) for one in fields(self)}
        )

    def bars(self, questions: int) -> list[Bar]:
        """What must be reached."""
        return [
            Bar("questions answered", float(self.answers), float(questions)),
            Bar("rounds with a valid action, percent", _percent(self.valid, self.rounds), VALID),
            Bar("citations that resolve, percent", _percent(self.resolved, self.citations), 100.0),
            Bar("choices that are an option, percent", _percent(self.options, self.choices), 100.0),
        ]


def _percent(part: int, whole: int) -> float:
    """All of nothing is all."""
    return 100.0 * part / whole if whole else 100.0


def conduct(store: Store, trajectories: Iterable[str], retries: int) -> Conduct:
    """How the reasoner behaved in these trajectories; each citation is looked up again."""
    total = Conduct()
    for name in trajectories:
        with store.begin() as session:
            events = events_of(session, name)
            total += conduct_in(events, retries) + _cited(session, events)
    return total


def conduct_in(events: Sequence[Event], retries: int) -> Conduct:
    """The rounds and the choice of one trajectory."""
    heard = {event.round for event in events if isinstance(event, Acted)}
    valid = {one.round for one in _accepted(events) if _own(one) and one.attempt <= retries}
    asked, answer = _asked(events), _answer(events)
    letters = ascii_uppercase[: len(asked.question.options)]
    return Conduct(
        answers=int(answer is not None),
        rounds=len(heard),
        valid=len(valid),
        choices=int(bool(letters) and answer is not None),
        options=int(bool(letters) and answer is not None and answer.option in tuple(letters)),
        tokens_in=sum(event.tokens_in for event in events if isinstance(event, ModelCalled)),
    )


def _accepted(events: Sequence[Event]) -> list[Acted]:
    """The actions that the guard let through: it judges the one before it."""
    pairs = ((events[at - 1], one) for at, one in enumerate(events) if isinstance(one, Guarded))
    return [acted for acted, one in pairs if one.accepted and isinstance(acted, Acted)]


def _own(acted: Acted) -> bool:
    return acted.action is not None and acted.action.reason != BY_HARNESS


def _asked(events: Sequence[Event]) -> QuestionAsked:
    return next(event for event in events if isinstance(event, QuestionAsked))


def _answer(events: Sequence[Event]) -> Answer | None:
    return next((event.answer for event in events if isinstance(event, Ended)), None)


def _cited(session: Session, events: Sequence[Event]) -> Conduct:
    """The answer's citations, and those of them that the store gives again, word for word."""
    answer = _answer(events)
    cited = answer.citations if answer else ()
    given = [one.unscored for one in cited]
    found = cite(session, _asked(events).view, [one.ref for one in given]).citations
    return Conduct(citations=len(given), resolved=len(set(given) & set(found)))
