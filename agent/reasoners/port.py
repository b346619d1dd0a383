"""The port that every reasoner implements: five decisions, each from a decision context."""

from __future__ import annotations

from typing import Protocol

from pydantic import Field

from agent.harness.inform import CardLine, Picture
from agent.state import Focus
from domain.asking import Action, Evidence, Ledger, Mode, Question, Subtask, Support
from domain.base import Frozen
from domain.errors import ModelError
from domain.ledger import Edits, SubtaskDraft, refs
from domain.memories import MemoryView
from domain.skills import RoutedSkill
from domain.trajectory import (
    EvidenceRetrieved,
    ImageNote,
    Neighbour,
    Resolution,
    SupportScored,
)

LLM = "llm"
"""The name of the reasoner that is a language model; others decide by rules."""


def reads_cards(reasoner: str) -> bool:
    """Check by its name whether a reasoner reads cards: others compare scores."""
    return reasoner == LLM


class Unreadable(ModelError):
    """A reply that is not a decision; its message is shown to the reasoner."""


class CompletedRound(Frozen):
    """A finished round: the action, its subtask, and the lines of the card of its search."""

    round: int
    subtask: str
    action: Action
    lines: tuple[CardLine, ...]

    @property
    def card(self) -> str:
        return "\n".join(line.text for line in self.lines)


class CompletedSearch(Frozen):
    """A finished search: its subtask, and its result."""

    subtask: str
    found: EvidenceRetrieved


class DecisionContext(Frozen):
    """All that a reasoner may look at when it decides."""

    question: Question
    view: MemoryView
    ledger: Ledger = Ledger()
    # The latest plan as it was made or repaired.
    planned: Ledger = Ledger()
    current: Subtask | None = None
    round: int = 0
    focus: Focus | None = None
    steps: tuple[CompletedRound, ...] = ()
    # Everything retrieved so far, in order of first retrieval.
    evidence: tuple[Evidence, ...] = ()
    # The result of each search, in order, and the scores of evidence so far.
    searches: tuple[CompletedSearch, ...] = ()
    support: tuple[SupportScored, ...] = ()
    found: EvidenceRetrieved | None = None
    # The segments that the focus has edges to.
    neighbours: tuple[Neighbour, ...] = ()
    hints: tuple[str, ...] = ()
    # What was wrong with the last reply.
    complaint: str = ""
    forced: Mode | None = None
    # The available search modes.
    modes: tuple[Mode, ...] = tuple(Mode)
    # This is the last round.
    final: bool = False
    # Names by tag.
    people: tuple[tuple[str, str], ...] = ()
    # Those that apply now, cautionary ones only once the search goes badly.
    skills: tuple[RoutedSkill, ...] = ()
    # The images of the searches so far, the latest search's first.
    pictures: tuple[Picture, ...] = ()
    # What the actions so far carry over, oldest first.
    notes: tuple[str, ...] = ()
    # The action that ended the rounds, if one did.
    answered: Action | None = None
    # What is left of the budget.
    seconds: float = 0.0
    tokens: int = 0
    # What happens when, a line an event.
    contents: tuple[str, ...] = ()
    # An open question is answered with what is likeliest rather than "not in memory".
    guesses: bool = False

    @property
    def held(self) -> tuple[Evidence, ...]:
        """Return the evidence in the ledger; an answer by rules rests on nothing else."""
        known = refs(self.ledger)
        return tuple(e for e in self.evidence if e.ref in known)


class Assessment(Frozen):
    """A reasoner's reading of a retrieval: subtasks that are answered now, or reopened.

    ``shown``: refs of the images it looked at; ``seen``: what it says it saw on them. ``unseen``:
    digests of images it should have looked at, whose files are missing.
    """

    resolved: tuple[Resolution, ...] = ()
    reopened: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    seen: tuple[ImageNote, ...] = ()
    unseen: tuple[str, ...] = ()


class Conclusion(Frozen):
    """A reasoner's final answer from all evidence; code checks it before it is shown.

    ``option`` is a letter; ``refs`` are what the answer rests on. ``ranked``: the refs of what was
    found, best first, where the reasoner compared it. ``support``: how well each ref supports the
    answer, and ``sure`` how certain the whole answer is, where the reasoner can tell.
    """

    text: str
    option: str | None = None
    refs: tuple[str, ...] = ()
    not_in_memory: bool = False
    ranked: tuple[str, ...] = ()
    support: tuple[Support, ...] = ()
    sure: float | None = Field(default=None, ge=0, le=1)
    share: float | None = Field(
        default=None, ge=0, le=1, description="how much of the support the option has"
    )


class Responder(Protocol):
    """Answers from what was found. ``note`` is what the user must know about its answers."""

    name: str
    note: str

    def conclude(self, decision: DecisionContext, /) -> Conclusion:
        """Answer from everything that was found, comparing the options if there are any.

        Raises:
            Unreadable: a model's reply is not an answer.
            ModelError: the model cannot be reached.
        """


class Reasoner(Responder, Protocol):
    """Makes the decisions of a run of the HOMER machine; the harness checks each of them.

    A method raises ``Unreadable`` for a reply that is not a decision, and ``ModelError`` when the
    model cannot be reached.
    """

    def plan(self, decision: DecisionContext, /) -> tuple[SubtaskDraft, ...]:
        """Split the question into at most five atomic subtasks."""

    def act(self, decision: DecisionContext, /) -> Action:
        """Search once more, or answer."""

    def assess(self, decision: DecisionContext, /) -> Assessment:
        """Decide which subtasks the last search (``decision.found``) answers."""

    def replan(self, decision: DecisionContext, /, reasons: tuple[str, ...]) -> Edits:
        """Repair the plan as little as possible; empty edits leave it unchanged."""
