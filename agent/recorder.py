"""The record of a run: every event is stored and passed to live listeners, and used again.

A resumed run reuses the calls that were already paid for; a replay uses everything; a fork uses
what a person edited.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from agent.harness.inform import CardLine
from agent.state import State
from domain.asking import Action, Citation, Evidence, ToolName
from domain.calls import CallRecord
from domain.errors import Diverged, ReplayMiss
from domain.moments import ResolvedRefs
from domain.skills import RoutedSkill
from domain.trajectory import (
    Ended,
    Event,
    EvidenceRetrieved,
    Forked,
    ImageNote,
    ImagesSeen,
    ModelCalled,
    PartialReply,
    Prompted,
    QuestionAsked,
    RunListener,
    Setup,
    SkillsRouted,
    SupportScored,
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


# Recorded model calls and results that a run uses instead of asking again.


class Halt(Exception):
    """Raised where a repeated run is to end; ``state`` is the machine's state there."""

    def __init__(self, state: State) -> None:
        super().__init__("the run is to end here")
        self.state = state


class ReplaySource:
    """Recorded calls and searches, each served once, and only to the same request.

    Args:
        calls: model calls without an event of the run yet, oldest first.
        events: searches are taken from these.
        action: the next action, decided beforehand.
        alone: a request that is not next in the record is an error: nothing may be asked again.
        stop: says at which state of the machine, before a boundary, it is halted.
    """

    def __init__(
        self,
        calls: Iterable[CallRecord] = (),
        events: Iterable[Event] = (),
        action: Action | None = None,
        *,
        alone: bool = False,
        stop: Callable[[State], bool] | None = None,
    ) -> None:
        recorded = list(events)
        self.alone = alone
        self._stop = stop
        self.served = 0
        self._calls = deque(calls)
        self._found = deque[tuple[EvidenceRetrieved, tuple[Event, ...]]]()
        made = list[Event]()  # The calls for a result are right before it.
        for event in recorded:
            if isinstance(event, EvidenceRetrieved):
                self._found.append((event, tuple(made)))
            if isinstance(event, Prompted | ModelCalled):
                made.append(event)
            else:
                made.clear()
        self._calls_of_tool: tuple[Event, ...] = ()
        self._skills = [e.skills for e in recorded if isinstance(e, SkillsRouted)]
        self._action = action
        self._support = deque(e for e in recorded if isinstance(e, SupportScored))
        self._citations = _citations(recorded)

    def halt(self, state: State) -> None:
        """Stop if the run is to end in this state.

        Raises:
            Halt: it is.
        """
        if self._stop is not None and self._stop(state):
            raise Halt(state)

    def call(self, request: str, purpose: str) -> CallRecord | None:
        """Return the recorded call of that request if it is next, else None.

        Raises:
            ReplayMiss: it is not next, and only the record may be used.
        """
        if self._calls and self._calls[0].request_hash == request:
            self.served += 1
            return self._calls.popleft()
        self._calls.clear()
        self._miss(f"call for {purpose!r} with this request ({request[:12]})")
        return None

    def found(
        self, mode: ToolName, query: str, arguments: Mapping[str, Any] | None = None
    ) -> EvidenceRetrieved | None:
        """Return the recorded result of the search if it is next, else None.

        Raises:
            ReplayMiss: it is not next, and only the record may be used.
        """
        following, calls = self._found[0] if self._found else (None, ())
        asked = (mode, query, arguments or {})
        if following and (following.mode, following.query, following.arguments) == asked:
            self._found.popleft()
            self._calls_of_tool = calls
            return following
        self._found.clear()
        self._miss(f"search {mode} {query!r}")
        return None

    def calls_of_tool(self) -> tuple[Event, ...]:
        """Return the events of the calls that the tool made for the result returned last."""
        for event in self._calls_of_tool:
            if isinstance(event, ModelCalled) and self._calls and _is_of(self._calls[0], event):
                self._calls.popleft()
                self.served += 1
        return self._calls_of_tool

    def support(self, claim: str) -> SupportScored | None:
        """Return the recorded scores of this claim if they are next, else None.

        Raises:
            ReplayMiss: it is not next, and only the record may be used.
        """
        if self._support and self._support[0].claim == claim:
            return self._support.popleft()
        self._support.clear()
        self._miss(f"support of {claim!r}")
        return None

    def routed(self) -> tuple[RoutedSkill, ...] | None:
        """Return the recorded skills of the question, else None."""
        return self._skills[0] if self._skills else None

    def action(self) -> Action | None:
        """Return the action that was decided beforehand, once, else None."""
        action, self._action = self._action, None
        return action

    def cite(self, refs: Sequence[str]) -> ResolvedRefs:
        """Resolve refs to the recorded answer's citations; others are unknown."""
        distinct = tuple(dict.fromkeys(refs))
        known = [ref for ref in distinct if ref in self._citations]
        unknown = tuple(ref for ref in distinct if ref not in self._citations)
        return ResolvedRefs(citations=tuple(self._citations[ref] for ref in known), unknown=unknown)

    def _miss(self, what: str) -> None:
        if self.alone:
            raise ReplayMiss(f"the record has no {what} at this place")


def _citations(events: Iterable[Event]) -> Mapping[str, Citation]:
    answers = [e.answer for e in events if isinstance(e, Ended) and e.answer is not None]
    return {citation.ref: citation for answer in answers[-1:] for citation in answer.citations}


def source_of(
    calls: Sequence[CallRecord],
    events: Sequence[Event],
    *,
    alone: bool = False,
    stop: Callable[[State], bool] | None = None,
) -> ReplaySource:
    """Return the source for a run that repeats ``events``, and then goes on unless ``alone``."""
    # A fork's events begin with its parent's, whose calls belong to the parent; its edit is the
    # first that it repeats.
    own_events = events[inherited_count(events) :]
    matched, later = split_recorded_calls(calls, own_events)
    # A call that failed and has no event is made again.
    left = [call for call in later if alone or call.reply is not None]
    fork = own_events[0] if own_events and isinstance(own_events[0], Forked) else None
    searched = any(isinstance(event, EvidenceRetrieved) for event in own_events)
    found = [fork.found] if fork and fork.found and not searched else []
    action = fork.edit.action if fork else None
    return ReplaySource([*matched, *left], [*own_events, *found], action, alone=alone, stop=stop)


def split_recorded_calls(
    calls: Sequence[CallRecord], events: Sequence[Event]
) -> tuple[list[CallRecord], list[CallRecord]]:
    """Split calls into those that ``events`` record, in order, and those after them."""
    matched, position = [], 0
    for event in events:
        if isinstance(event, ModelCalled) and position < len(calls):
            same = (k for k in range(position, len(calls)) if _is_of(calls[k], event))
            # Calls of steps that were interrupted and repeated have no event.
            position = next(same, position)
            matched.append(calls[position])
            position += 1
    return matched, list(calls[position:])


def _is_of(call: CallRecord, event: ModelCalled) -> bool:
    return (call.request_hash, call.error) == (event.request, event.error)


def inherited_count(events: Sequence[Event]) -> int:
    """Count the leading events that come from a parent trajectory."""
    forks = [at for at, event in enumerate(events) if isinstance(event, Forked)]
    return forks[-1] if forks else 0
