"""The recorder: every event of a run goes to the store, and to whoever watches it live."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from agent.replay_source import ReplaySource
from domain.asking import Evidence
from domain.live import PartialReply, RunListener
from domain.trajectory import Event, EvidenceRetrieved, QuestionAsked, Setup
from store.queries.trajectories import Mark, drop_events, events_of

if TYPE_CHECKING:
    from store.database import Store

E = TypeVar("E")
Append = Callable[[str, int, Sequence[Event], Sequence[Mark]], None]
"""Writes events of a trajectory with their marks, numbered from the given one."""


class Recorder:
    """Keeps the events of one run in memory too, as the place where nodes look evidence up.

    Events are numbered by the machine's state. When a run goes on after a crash, ``rewind`` forgets
    those of the step that was cut off, so that doing it again leaves no trace twice. ``past`` is
    what the run takes from a record; ``step`` is the machine's step that events come from now.
    ``hold``, where it is set, keeps what a step flushes for the checkpoint that follows at once.
    """

    def __init__(
        self,
        store: Store,
        trajectory: str,
        append: Append,
        on_event: RunListener | None = None,
    ) -> None:
        self._store, self.trajectory = store, trajectory
        self._append, self._on_event = append, on_event
        self.events: list[Event] = []
        self.cards: dict[int, str] = {}
        self.past = ReplaySource()
        self.step = ""
        self.hold: Append | None = None
        self._saved = 0
        self._marks: list[Mark] = []
        self._evidence: dict[str, Evidence] = {}
        self._counted = 0

    @property
    def seq(self) -> int:
        """The number of the next event."""
        return len(self.events)

    @property
    def setup(self) -> Setup | None:
        """What the run decides with, once it has begun."""
        first = self.events[0] if self.events else None
        return first.setup if isinstance(first, QuestionAsked) else None

    @property
    def round(self) -> int:
        """The round of the last event."""
        return self.events[-1].round if self.events else 0

    def rewind(self, seq: int) -> None:
        """Load what was recorded before ``seq`` and forget what comes from there on."""
        with self._store.begin() as session:
            drop_events(session, self.trajectory, seq)
            self.events = events_of(session, self.trajectory)
        self._saved, self._counted, self._evidence = self.seq, 0, {}
        self._marks.clear()
        self.cards.clear()

    def begin_with(self, events: Sequence[Event]) -> None:
        """Take over events of another run, as if they had happened in this one."""
        now = datetime.now(UTC)
        self.events = list(events)
        self._marks = [Mark(now) for _ in events]

    def add(self, *events: Event) -> None:
        """Note events; they are on disk after the next ``flush``."""
        for event in events:
            self.events.append(event)
            self._marks.append(Mark(datetime.now(UTC), self.step))
            if self._on_event is not None:
                self._on_event(event)

    def hear(self, number: int, purpose: str) -> Callable[[str], None] | None:
        """What tells whoever watches live how a reply of round ``number`` grows, if anyone does."""
        tell = self._on_event
        if tell is None:
            return None
        return lambda text: tell(PartialReply(round=number, purpose=purpose, text=text))

    def flush(self, *, step: bool = False) -> None:
        """Write what is new; at the end of a ``step``, with the checkpoint after it."""
        new = self.events[self._saved :]
        write = self.hold if step and self.hold is not None else self._append
        if new:
            write(self.trajectory, self._saved, new, self._marks)
        self._saved = self.seq
        self._marks = []

    def of(self, kind: type[E]) -> list[E]:
        """The events of one kind so far, in order."""
        return [event for event in self.events if isinstance(event, kind)]

    def evidence(self) -> dict[str, Evidence]:
        """Everything retrieved so far by its ref, each with the best score it was found with.

        In the order of first sight.
        """
        for event in self.events[self._counted :]:
            if isinstance(event, EvidenceRetrieved):
                self._count(event)
        self._counted = self.seq
        return dict(self._evidence)

    def _count(self, found: EvidenceRetrieved) -> None:
        for evidence in found.evidence:
            known = self._evidence.get(evidence.ref)
            if known is None or evidence.score > known.score:
                self._evidence[evidence.ref] = evidence
