"""What a run takes from a record, in order, instead of asking model and memory anew.

A run that goes on after a crash takes the calls that were paid for; a replay takes everything; a
fork takes what a person changed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from agent.state import State
from domain.asking import Action, Citation, Mode
from domain.errors import ReplayMiss
from domain.skills import RoutedSkill
from domain.trajectory import (
    Acted,
    Ended,
    Event,
    EvidenceRetrieved,
    Forked,
    ModelCalled,
    SkillsRouted,
    SupportScored,
)
from models.chat import CallRecord
from retrieval.result import ResolvedRefs


class Halt(Exception):
    """A replay has come to where a person stopped the run; ``state`` is the machine's there."""

    def __init__(self, state: State) -> None:
        super().__init__("the run was stopped here")
        self.state = state


class ReplaySource:
    """Recorded calls and searches, each served once, and only to the same request.

    Args:
        calls: model calls that no event of the run tells of yet, oldest first.
        events: searches are taken from these.
        action: what the next act shall be.
        alone: nothing may be asked anew: a request that is not next in the record is an error.
        stop: the number of the event before which a person stopped the run.
    """

    def __init__(
        self,
        calls: Iterable[CallRecord] = (),
        events: Iterable[Event] = (),
        action: Action | None = None,
        *,
        alone: bool = False,
        stop: int | None = None,
    ) -> None:
        told = list(events)
        self.alone = alone
        self._stop = stop
        self.served = 0
        self._calls = deque(calls)
        self._found = deque(e for e in told if isinstance(e, EvidenceRetrieved))
        self._skills = [e.skills for e in told if isinstance(e, SkillsRouted)]
        self._action = action
        self._support = deque(e for e in told if isinstance(e, SupportScored))
        self._citations = _citations(told)

    def halt(self, seq: int, state: State) -> None:
        """Go no further than the person who stopped the run.

        Raises:
            Halt: it was stopped before event ``seq``.
        """
        if seq == self._stop:
            raise Halt(state)

    def call(self, request: str, purpose: str) -> CallRecord | None:
        """The recorded call of that request, if it is next; None where it must be made.

        Raises:
            ReplayMiss: it is not next, and nothing may be asked anew.
        """
        if self._calls and self._calls[0].request_hash == request:
            self.served += 1
            return self._calls.popleft()
        self._calls.clear()
        self._miss(f"call for {purpose!r} with this request ({request[:12]})")
        return None

    def found(self, mode: Mode, query: str) -> EvidenceRetrieved | None:
        """What the search gave, if it is next; None where it must be made.

        Raises:
            ReplayMiss: it is not next, and nothing may be asked anew.
        """
        if self._found and (self._found[0].mode, self._found[0].query) == (mode, query):
            return self._found.popleft()
        self._found.clear()
        self._miss(f"search {mode} {query!r}")
        return None

    def support(self, claim: str) -> SupportScored | None:
        """What scoring this claim gave, if it is next; None where it must be done.

        Raises:
            ReplayMiss: it is not next, and nothing may be asked anew.
        """
        if self._support and self._support[0].claim == claim:
            return self._support.popleft()
        self._support.clear()
        self._miss(f"support of {claim!r}")
        return None

    def routed(self) -> tuple[RoutedSkill, ...] | None:
        """The skills that the question had; None where they must be looked for."""
        return self._skills[0] if self._skills else None

    def action(self) -> Action | None:
        """The act that was decided beforehand, once; None where the reasoner decides."""
        decided, self._action = self._action, None
        return decided

    def cite(self, refs: Sequence[str]) -> ResolvedRefs:
        """Citations as the recorded answer has them; what it has not is unknown."""
        once = tuple(dict.fromkeys(refs))
        known = [ref for ref in once if ref in self._citations]
        unknown = tuple(ref for ref in once if ref not in self._citations)
        return ResolvedRefs(citations=tuple(self._citations[ref] for ref in known), unknown=unknown)

    def _miss(self, what: str) -> None:
        if self.alone:
            raise ReplayMiss(f"the record has no {what} at this place")


def _citations(events: Iterable[Event]) -> Mapping[str, Citation]:
    ends = [e.answer for e in events if isinstance(e, Ended) and e.answer is not None]
    return {citation.ref: citation for answer in ends[-1:] for citation in answer.citations}


def going_on(calls: Sequence[CallRecord], events: Sequence[Event]) -> ReplaySource:
    """What a run takes that goes on after ``events``: calls they do not tell of, a fork's edit.

    A fork's events begin with its parent's, whose calls are the parent's.
    """
    own = events[inherited(events) :]
    _, later = parted(calls, own)
    left = [call for call in later if call.reply is not None]
    fork = own[0] if own and isinstance(own[0], Forked) else None
    if fork is None:
        return ReplaySource(left)
    acted = any(isinstance(event, Acted) for event in own)
    searched = any(isinstance(event, EvidenceRetrieved) for event in own)
    found = [fork.found] if fork.found and not searched else []
    return ReplaySource(left, found, None if acted else fork.edit.action)


def parted(
    calls: Sequence[CallRecord], events: Sequence[Event]
) -> tuple[list[CallRecord], list[CallRecord]]:
    """The calls that ``events`` tell of, in order, and those that came after them.

    Calls of steps that were cut off and done again are told of by no event.
    """
    told, at = [], 0
    for event in events:
        if isinstance(event, ModelCalled) and at < len(calls):
            same = (k for k in range(at, len(calls)) if _is_of(calls[k], event))
            at = next(same, at)
            told.append(calls[at])
            at += 1
    return told, list(calls[at:])


def _is_of(call: CallRecord, event: ModelCalled) -> bool:
    return (call.request_hash, call.error) == (event.request, event.error)


def inherited(events: Sequence[Event]) -> int:
    """How many of the events are a parent's."""
    forks = [at for at, event in enumerate(events) if isinstance(event, Forked)]
    return forks[-1] if forks else 0
