"""Recorded model calls and results that a run uses instead of asking again.

A resumed run reuses the calls that were already paid for; a replay uses everything; a fork uses
what a person edited.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from agent.state import State
from domain.asking import Action, Citation, ToolName
from domain.calls import CallRecord
from domain.errors import ReplayMiss
from domain.moments import ResolvedRefs
from domain.skills import RoutedSkill
from domain.trajectory import (
    Ended,
    Event,
    EvidenceRetrieved,
    Forked,
    ModelCalled,
    Prompted,
    SkillsRouted,
    SupportScored,
)


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
    """Return the source for a run that repeats ``events``, and then goes on if it is not ``alone``.

    A fork's events begin with its parent's, whose calls belong to the parent; its edit is the first
    that it repeats. A call that failed and has no event is made again.
    """
    own_events = events[inherited_count(events) :]
    matched, later = split_recorded_calls(calls, own_events)
    left = [call for call in later if alone or call.reply is not None]
    fork = own_events[0] if own_events and isinstance(own_events[0], Forked) else None
    searched = any(isinstance(event, EvidenceRetrieved) for event in own_events)
    found = [fork.found] if fork and fork.found and not searched else []
    action = fork.edit.action if fork else None
    return ReplaySource([*matched, *left], [*own_events, *found], action, alone=alone, stop=stop)


def split_recorded_calls(
    calls: Sequence[CallRecord], events: Sequence[Event]
) -> tuple[list[CallRecord], list[CallRecord]]:
    """Split calls into those that ``events`` record, in order, and those after them.

    Calls of steps that were interrupted and repeated have no event.
    """
    matched, position = [], 0
    for event in events:
        if isinstance(event, ModelCalled) and position < len(calls):
            same = (k for k in range(position, len(calls)) if _is_of(calls[k], event))
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
