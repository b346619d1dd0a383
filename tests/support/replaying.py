"""Every trajectory that a test leaves behind must replay: the same events, and nobody asked."""

from __future__ import annotations

from domain.trajectory import QuestionAsked
from graphs.replay import replay
from store.database import Store
from store.queries.trajectories import events_of, list_trajectories

KINDS = ("local", "llm")
"""Reasoners whose decisions come from the record; a scripted one is replayed by its own tests."""


def replay_all(store: Store) -> int:
    """Replay what is on record; returns how many trajectories that were."""
    with store.begin() as session:
        rows = [(row.id, events_of(session, row.id)) for row in list_trajectories(session, 1000)]
    ran = [
        name
        for name, events in rows
        if events and isinstance(events[0], QuestionAsked) and events[0].reasoner in KINDS
    ]
    for name in ran:
        made = replay(store, name)
        assert made.divergence is None, f"{name} does not replay: {made.divergence}"
    return len(ran)
