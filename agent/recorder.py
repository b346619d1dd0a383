"""The recorder: stores every event of a run and passes it to live listeners."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from agent.harness.inform import CardLine
from agent.replay_source import ReplaySource
from agent.state import State
from domain.asking import Evidence
from domain.errors import Diverged
from domain.skills import RoutedSkill
from domain.trajectory import (
    Event,
    EvidenceRetrieved,
    ImageNote,
    ImagesSeen,
    PartialReply,
    QuestionAsked,
    RunListener,
    Setup,
    canonical_event,
    choice_of,
)
from store.queries.trajectories import Mark, delete_events, events_of

if TYPE_CHECKING:
    from agent.strategy import Strategy
    from store.database import Store

E = TypeVar("E")
Append = Callable[[str, int, Sequence[Event], Sequence[Mark]], None]
"""Writes events of a trajectory with their marks, numbered from the given one."""


class Recorder:
    """Records the events of one run, also in memory, where nodes look evidence up.

    A run that resumes is made again from its record: what it adds is compared with the events that
    are ``ahead`` on record, without recording or telling them twice. ``replay_source`` has the
    recorded calls and results; ``step`` is the machine's current step, ``boundary`` the state
    before the last one that calls a model or a tool. ``clock`` returns the seconds spent.
    """

    def __init__(
        self,
        store: Store,
        trajectory: str,
        append: Append,
        on_event: RunListener | None = None,
        *,
        strategy: Strategy,
    ) -> None:
        self._store, self.trajectory, self.strategy = store, trajectory, strategy
        self._append, self._on_event = append, on_event
        self.events: list[Event] = []
        self.cards: dict[tuple[int, int], tuple[CardLine, ...]] = {}
        self.replay_source = ReplaySource()
        self.step = ""
        self.boundary: State | None = None
        self.clock: Callable[[], float] = float
        self._recorded: Sequence[Event] = ()
        self._saved = 0
        self._marks: list[Mark] = []
        self._evidence: dict[str, Evidence] = {}
        self._counted = 0

    @property
    def seq(self) -> int:
        """Return the number of the next event."""
        return len(self.events)

    @property
    def setup(self) -> Setup | None:
        """Return the run's setup; None before its first event."""
        first = self.events[0] if self.events else None
        return first.setup if isinstance(first, QuestionAsked) else None

    @property
    def chosen_by(self) -> RoutedSkill | None:
        """Return the skill by which the run's strategy was chosen; None if by none."""
        choice = choice_of(self.events)
        return choice.skill if choice else None

    @property
    def round(self) -> int:
        """Return the round of the last event."""
        return self.events[-1].round if self.events else 0

    @property
    def ahead(self) -> Event | None:
        """Return the next event on record while it is repeated; None once the run goes on."""
        return self._recorded[self.seq] if self.seq < len(self._recorded) else None

    def rewind(self, seq: int) -> None:
        """Load the events before ``seq`` and delete those from there on."""
        with self._store.begin() as session:
            delete_events(session, self.trajectory, seq)
            self.begin_with(events_of(session, self.trajectory))

    def begin_with(self, events: Sequence[Event], repeated: Sequence[Event] = ()) -> None:
        """Start with events that are on record, or those of another run; ``repeated`` follow."""
        self.events, self._recorded = list(events), (*events, *repeated)
        self._saved, self._marks = len(self._recorded), []
        self._counted, self._evidence = 0, {}
        self.cards.clear()

    def begin(self, first: Event) -> None:
        """Start with the first event, which is on record with the question, and tell it."""
        self.begin_with([first])
        if self._on_event is not None:
            self._on_event(first)

    def add(self, *events: Event) -> None:
        """Add events; they are on disk after the next ``flush``.

        Raises:
            Diverged: the run was to repeat its record, and does something else.
        """
        for event in events:
            recorded = self.ahead
            if recorded is not None:
                same = canonical_event(event) == canonical_event(recorded)
                self.events.append(recorded if same else event)
                if not same:
                    raise Diverged(
                        f"trajectory {self.trajectory} cannot be taken up again: at event "
                        f"{self.seq - 1} its record says {recorded.kind}, which does not come "
                        f"about any more; ask the question anew"
                    )
                continue
            self.events.append(event)
            self._marks.append(Mark(datetime.now(UTC), self.step, self.clock()))
            if self._on_event is not None:
                self._on_event(event)

    def reply_listener(self, number: int, purpose: str) -> Callable[[str], None] | None:
        """Return a listener for the growing reply of round ``number``; None without listeners."""
        listener = self._on_event
        if listener is None:
            return None
        return lambda text: listener(PartialReply(round=number, purpose=purpose, text=text))

    def flush(self) -> None:
        """Write the new events."""
        if new := self.events[self._saved :]:
            self._append(self.trajectory, self._saved, new, self._marks)
            self._saved, self._marks = self.seq, []

    def of(self, kind: type[E]) -> list[E]:
        """Return the events of one kind so far, in order."""
        return [event for event in self.events if isinstance(event, kind)]

    def evidence(self) -> dict[str, Evidence]:
        """Return all evidence by its ref, each with its best score, in order of first retrieval.

        An image's evidence has what was seen on it.
        """
        for event in self.events[self._counted :]:
            if isinstance(event, EvidenceRetrieved):
                for evidence in event.evidence:
                    known = self._evidence.get(evidence.ref)
                    if known is None or evidence.score > known.score:
                        seen = known.seen if known else ""
                        self._evidence[evidence.ref] = evidence.model_copy(update={"seen": seen})
            elif isinstance(event, ImagesSeen):
                self._evidence |= with_notes(self._evidence, event.seen)
        self._counted = self.seq
        return dict(self._evidence)


def with_notes(evidence: Mapping[str, Evidence], notes: Iterable[ImageNote]) -> dict[str, Evidence]:
    """Return the pieces of evidence on whose images something was seen, with it, by ref."""
    changed: dict[str, Evidence] = {}
    for one in notes:
        piece = changed.get(one.ref) or evidence.get(one.ref)
        if piece is not None and one.text not in piece.seen:
            seen = "; ".join(filter(None, [piece.seen, one.text]))
            changed[one.ref] = piece.model_copy(update={"seen": seen})
    return changed
