"""What led to an answer, for programs."""

from __future__ import annotations

from domain.asking import Answer
from domain.trajectory import Event
from graphs.replay import Replayed, replay
from store.database import Store
from store.queries.trajectories import events_of, find_trajectory
from views.answer_lines import event_lines
from views.words import printable


class AskedTrajectory:
    """The record of one question: every event from the question to the answer.

    Args:
        store: holds the record.
        name: the trajectory's id, or the beginning of it.

    Raises:
        NotFound: there is no such trajectory.
        Ambiguous: several begin with ``name``.
    """

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        with store.begin() as session:
            row = find_trajectory(session, name)
            self.events: tuple[Event, ...] = tuple(events_of(session, row.id))
        self.id, self.state, self.strategy = row.id, row.state, row.machine
        self.question: str = row.question.text
        self.answer: Answer | None = row.answer

    def __repr__(self) -> str:
        """Return the question and a line or more for each event."""
        lines = [line for event in self.events for line in event_lines(event)]
        head = f"{self.id} ({self.state}): {self.question}"
        return "\n".join(map(printable, [head, *lines]))

    def replay(self) -> Replayed:
        """Run it again from its record, without a model call, and compare each event.

        Raises:
            InputError: nothing was recorded.
            MachineChanged: another version of the machine made it.
        """
        return replay(self._store, self.id)
