"""Evaluation runs as they would be on record, put in row by row over answers that are there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from domain.evaluation import WITH_SKILLS, WITHOUT_SKILLS, ErrorType, QuestionPart, Verdict
from domain.evaluation_options import Protocol
from store.database import Store
from store.queries.evaluations import (
    DONE,
    Slot,
    add_batch,
    begin_run,
    plan_slots,
    set_run_state,
    set_trajectory,
    set_verdict,
)
from tests.support.evaluation_rows import run_settings
from tests.support.machine import VIDEO
from tests.support.many_answers import a_run

KINDS = ("who", "where", "why")
BATCH = 8
"""Questions of a batch."""


def fill_run(
    store: Store,
    name: str,
    count: int,
    *,
    video: str = VIDEO,
    shift: int = 0,
    first: int = 0,
    **words: Any,
) -> None:
    """An online run: ``count`` questions with and without skills, in batches; most go right.

    Args:
        store: the store, with the answers of ``tests.support.many_answers``.
        name: what the run is called.
        count: how many questions.
        video: what they are about.
        shift: other questions go wrong with another shift.
        first: the number of the first of ``2 * count`` answers, which are of no other run.
        words: what the questions say instead, of ``EvalQuestion``'s fields.
    """
    slots = [
        _slot(arm, n, video, words) for arm in (WITHOUT_SKILLS, WITH_SKILLS) for n in range(count)
    ]
    settings = run_settings(protocol=Protocol.ONLINE, questions=count, dataset="houses")
    with store.begin() as session:
        begin_run(session, name, settings)
        plan_slots(session, name, slots)
        for at, slot in enumerate(slots):
            set_trajectory(session, name, slot, a_run(first + at))
            set_verdict(session, name, slot, _verdict(slot, shift))
        for batch in range(-1, -(-count // BATCH)):
            in_use = {"advice-0": 1 + batch} if batch > 0 else {}
            add_batch(session, name, batch, {"in_use": in_use, "banned": []})
        set_run_state(session, name, DONE)


def _slot(arm: str, place: int, video: str, words: dict[str, Any]) -> Slot:
    item = {
        "id": f"q{place}",
        "video": "house",
        "question": f"Who opens door {place}?",
        "answer": "Ann",
        "types": [KINDS[place % len(KINDS)]],
    }
    return Slot(arm, f"q{place}", place, QuestionPart.TEST, place // BATCH, video, item | words)


def _verdict(slot: Slot, shift: int) -> Verdict:
    wrong = (slot.place + shift) % (5 if slot.arm == WITH_SKILLS else 3) == 0
    fault = _FAULTS[slot.place % len(_FAULTS)] if wrong else None
    return Verdict(right=not wrong, judge="words", why="It names Ann.", cited=0.5, fault=fault)


_FAULTS: Sequence[ErrorType] = tuple(ErrorType)
