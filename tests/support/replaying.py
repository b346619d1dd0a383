"""Every trajectory that a test leaves behind must replay: the same events, and nobody asked."""

from __future__ import annotations

import hashlib

from domain.trajectory import Event, QuestionAsked
from graphs.replay import replay
from store.database import Store
from store.queries.trajectories import events_of, list_trajectories

KINDS = ("local", "llm")
"""Reasoners whose decisions come from the record; a scripted one is replayed by its own tests."""


def replay_all(store: Store, known: set[str] | None = None, most: int = 1000) -> int:
    """Replay what is on record; returns how many trajectories that were.

    Args:
        store: the library.
        known: what was replayed before, byte for byte; it is not replayed again.
        most: Look at so many of the latest trajectories.
    """
    with store.begin() as session:
        rows = [(row.id, events_of(session, row.id)) for row in list_trajectories(session, most)]
    ran = [(name, events) for name, events in rows if _is_replayed(events)]
    before = set() if known is None else known
    for name, events in ran:
        record = _record(events)
        if record not in before:
            made = replay(store, name)
            assert made.divergence is None, f"{name} does not replay: {made.divergence}"
            before.add(record)
    return len(ran)


def _is_replayed(events: list[Event]) -> bool:
    first = events[0] if events else None
    return isinstance(first, QuestionAsked) and first.reasoner in KINDS


def _record(events: list[Event]) -> str:
    """Two runs with the same have the same events, and were asked the same of the same memory."""
    output = "\n".join(event.model_dump_json() for event in events)
    return hashlib.sha256(output.encode()).hexdigest()
