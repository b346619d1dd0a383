"""Signals: what a judged trajectory says about how it was searched (section 3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from domain.asking import Subtask, SubtaskState
from domain.skills import Signal
from domain.trajectory import Ended, Event, EvidenceRetrieved, Planned, Replanned, RoundClosed

SURE = 0.8
"""Confidence from which a wrong answer was overconfident."""
LONG, HARD, EASY = 4, 3, 1
"""Rounds of a long search that failed, of a hard win, and of an easy one."""

E = TypeVar("E")


@dataclass(frozen=True)
class Course:
    """How a search went. ``queries``: how many were made; ``subtasks``: as they ended."""

    rounds: int
    queries: int
    confidence: float
    subtasks: tuple[Subtask, ...]


def course_of(events: Sequence[Event]) -> Course | None:
    """Summarise a search from its events; None if it did not end with an answer."""
    ended = _all(events, Ended)
    if not ended or ended[-1].answer is None:
        return None
    return Course(
        rounds=ended[-1].rounds,
        queries=sum(event.round > 0 for event in _all(events, EvidenceRetrieved)),
        confidence=ended[-1].answer.confidence,
        subtasks=_subtasks(events),
    )


def signals(course: Course, attempts: int, *, right: bool) -> tuple[Signal, ...]:
    """Return the signals of a judged answer.

    A question is split if it has several subtasks. A right split is a win if all subtasks were
    resolved; a wrong one a failure; a wrong answer to an unsplit question suggests a missed split.
    A subtask stalls when it uses all its ``attempts`` unresolved.
    """
    return tuple(_right(course) if right else _wrong(course, attempts))


def _right(course: Course) -> Iterator[Signal]:
    if course.rounds >= HARD and course.queries >= 2:
        yield Signal.HARD_WIN
    if course.rounds <= EASY:
        yield Signal.SEARCH_WIN
    if len(course.subtasks) > 1 and all(_resolved(course.subtasks)):
        yield Signal.DECOMPOSE_WIN


def _wrong(course: Course, attempts: int) -> Iterator[Signal]:
    yield Signal.ERROR
    if course.confidence >= SURE:
        yield Signal.CALIBRATION
    if course.rounds >= LONG:
        yield Signal.SEARCH_FAIL
    yield Signal.DECOMPOSE_FAIL if len(course.subtasks) > 1 else Signal.DECOMPOSE_MISS
    stalled = zip(course.subtasks, _resolved(course.subtasks), strict=True)
    if any(task.attempts >= attempts and not is_resolved for task, is_resolved in stalled):
        yield Signal.SUBTASK_STALL


def _resolved(subtasks: Iterable[Subtask]) -> list[bool]:
    return [task.state is SubtaskState.RESOLVED for task in subtasks]


def _subtasks(events: Sequence[Event]) -> tuple[Subtask, ...]:
    ledgers = [e for e in events if isinstance(e, Planned | Replanned | RoundClosed)]
    return ledgers[-1].subtasks if ledgers else ()


def _all(events: Iterable[Event], kind: type[E]) -> list[E]:
    return [event for event in events if isinstance(event, kind)]
