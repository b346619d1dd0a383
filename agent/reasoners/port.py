"""The port that every reasoner implements: five decisions, each from what one turn shows."""

from __future__ import annotations

from typing import Protocol

from pydantic import Field

from agent.state import Focus
from domain.asking import Action, Evidence, Ledger, Mode, Question, Subtask, Support
from domain.base import Frozen
from domain.errors import ModelError
from domain.ledger import Edits, SubtaskDraft, refs
from domain.skills import RoutedSkill
from domain.trajectory import EvidenceRetrieved, Neighbour, Resolution, SupportScored
from domain.view import MemoryView


class Unreadable(ModelError):
    """A reply that is no decision; the message is what the reasoner is told."""


class CompletedRound(Frozen):
    """A round that lies behind: what was done for which subtask, and the card it gave."""

    round: int
    subtask: str
    action: Action
    card: str


class CompletedSearch(Frozen):
    """A search that lies behind: the subtask that it was made for, and what it gave."""

    subtask: str
    found: EvidenceRetrieved


class DecisionContext(Frozen):
    """All that a reasoner may look at when it decides.

    ``evidence`` is everything retrieved so far, in the order of first sight, and ``searches`` what
    each search gave, in order; ``support`` is how evidence was scored so far; ``complaint`` says
    what was wrong with the last reply; ``final`` that this is the last round. ``neighbours`` are
    the segments that the focus has edges to; ``people`` are names by tag. ``seconds`` and
    ``tokens`` are what is left of the budget. ``planned`` is the plan as it was made or repaired
    last. ``modes`` are those of searching that there are. ``skills`` are those that speak up now:
    cautionary ones once the search goes badly.
    """

    question: Question
    view: MemoryView
    ledger: Ledger = Ledger()
    planned: Ledger = Ledger()
    current: Subtask | None = None
    round: int = 0
    focus: Focus | None = None
    steps: tuple[CompletedRound, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    searches: tuple[CompletedSearch, ...] = ()
    support: tuple[SupportScored, ...] = ()
    found: EvidenceRetrieved | None = None
    neighbours: tuple[Neighbour, ...] = ()
    hints: tuple[str, ...] = ()
    complaint: str = ""
    forced: Mode | None = None
    modes: tuple[Mode, ...] = tuple(Mode)
    final: bool = False
    people: tuple[tuple[str, str], ...] = ()
    skills: tuple[RoutedSkill, ...] = ()
    images: tuple[str, ...] = ()
    seconds: float = 0.0
    tokens: int = 0

    @property
    def held(self) -> tuple[Evidence, ...]:
        """What was retrieved and is evidence of the ledger: an answer rests on nothing else."""
        known = refs(self.ledger)
        return tuple(e for e in self.evidence if e.ref in known)


class Assessment(Frozen):
    """What a reasoner makes of a retrieval: subtasks that are answered now, or no longer.

    ``unseen``: digests of images that it was to look at and whose files are gone.
    """

    resolved: tuple[Resolution, ...] = ()
    reopened: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()


class Conclusion(Frozen):
    """A reasoner's final answer from all evidence; code checks it before it is shown.

    ``option`` is a letter, ``refs`` what the answer rests on. ``ranked`` are the refs of what was
    found, best first, where the reasoner compared it. ``declined``: memory cannot hold the answer,
    and ``refs`` are the nearest moments. ``support``: how well each ref supports it, and ``sure``
    how sure the answer as a whole is, where the reasoner can tell.
    """

    text: str
    option: str | None = None
    refs: tuple[str, ...] = ()
    not_in_memory: bool = False
    declined: bool = False
    ranked: tuple[str, ...] = ()
    support: tuple[Support, ...] = ()
    sure: float | None = Field(default=None, ge=0, le=1)
    share: float | None = Field(
        default=None, ge=0, le=1, description="how much of the support the option has"
    )


class Reasoner(Protocol):
    """Decides. Whatever it returns is checked by the harness: helped, never trusted.

    A method raises ``Unreadable`` for a reply that is no decision, and ``ModelError`` when the
    model cannot be reached.
    """

    name: str
    note: str

    def plan(self, turn: DecisionContext) -> tuple[SubtaskDraft, ...]:
        """Split the question into at most five atomic subtasks."""

    def act(self, turn: DecisionContext) -> Action:
        """Search once more, or answer."""

    def assess(self, turn: DecisionContext) -> Assessment:
        """Which subtasks do the things just found (``turn.found``) answer?"""

    def replan(self, turn: DecisionContext, reasons: tuple[str, ...]) -> Edits:
        """Repair the plan as little as possible; empty edits leave it."""

    def conclude(self, turn: DecisionContext) -> Conclusion:
        """Answer from everything that was found, comparing the options if there are any."""
