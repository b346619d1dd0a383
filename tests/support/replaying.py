"""Every trajectory that a test leaves behind must replay: the same events, and nobody asked."""

from __future__ import annotations

import hashlib
from typing import Any

from domain.asking import Answer, Question
from domain.trajectory import Acted, Ended, Event, EvidenceRetrieved, ModelCalled, QuestionAsked
from graphs.replay import replay, round_state
from graphs.runner import Runner
from store.database import Store
from store.queries.trajectories import events_of, find_trajectory, list_trajectories
from tests.support.listeners import collect_events
from tests.support.obedient_model import LlmToolbox
from tests.support.openai_server import OpenAIServer

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
        output = "\n".join(event.model_dump_json() for event in events)
        record = hashlib.sha256(output.encode()).hexdigest()
        if record not in before:
            made = replay(store, name)
            assert made.divergence is None, f"{name} does not replay: {made.divergence}"
            # Where a fork of its last round would begin.
            for acted in [event for event in events if isinstance(event, Acted)][-1:]:
                with store.begin() as session:
                    row = find_trajectory(session, name)
                assert round_state(store, row, events, acted.round)["round"] == acted.round
            before.add(record)
    return len(ran)


def _is_replayed(events: list[Event]) -> bool:
    first = events[0] if events else None
    return isinstance(first, QuestionAsked) and first.reasoner in KINDS


class ScriptedRun:
    """A question asked with a scripted model and replayed: its events, its requests, its answer."""

    def __init__(
        self, store: Store, script: Any, question: Question, strategy: str, **more: Any
    ) -> None:
        self.store, self.events = store, list[Event]()
        with OpenAIServer(script) as server, Runner(store, LlmToolbox(server, **more)) as runner:
            made = runner.ask(question, collect_events(self.events), strategy=strategy)
            self.requests = list(server.requests)
        self.trajectory = made.trajectory_id
        again = replay(store, made.trajectory_id)
        assert again.divergence is None
        assert again.calls == len(self.requests) == len(self.of(ModelCalled))

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def searches(self) -> list[EvidenceRetrieved]:
        return self.of(EvidenceRetrieved)

    @property
    def answer(self) -> Answer:
        (ended,) = self.of(Ended)
        assert ended.answer is not None
        given: Answer = ended.answer
        return given
