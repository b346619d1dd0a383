"""What a language model is asked to reply with, and how that becomes the machine's own words."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import BaseModel, Field

from domain.asking import Action, Mode
from domain.ledger import Draft, Edits, Rewrite
from domain.trajectory import Resolution
from nodes.reasoners.port import Assessment, Conclusion

_REF = re.compile(r"\b([msk]\d+)\b")
_SUBTASK = re.compile(r"t[1-9]\d*")


def refs_in(said: list[str]) -> tuple[str, ...]:
    """The ids in what a model calls citations: ``[m12]``, ``m12, m13`` and ``m12`` alike."""
    found = [ref for text in said for ref in _REF.findall(text)]
    return tuple(dict.fromkeys(found)) or tuple(text for text in said if text.strip())


class SubtaskReply(BaseModel):
    """A subtask of a plan."""

    text: str = Field(description="one atomic thing to find out")
    depends: list[str] = Field(default_factory=list, description="ids of earlier subtasks: t1")

    def draft(self) -> Draft:
        """As the ledger takes it."""
        return Draft(text=self.text, depends=tuple(_SUBTASK.findall(" ".join(self.depends))))


class PlanReply(BaseModel):
    """A plan."""

    subtasks: list[SubtaskReply]


class ActReply(BaseModel):
    """One step."""

    reason: str = Field(default="", description="why, in one sentence")
    action: Literal["search", "answer"]
    mode: Literal["event", "video", "neighbor", "keyframe"] | None = None
    query: str = Field(default="", description="for a search: what memory would say")
    answer: str = Field(default="", description="for an answer: the letter, or the sentence")
    citations: list[str] = Field(default_factory=list, description="ids of evidence: m12")
    not_in_memory: bool = False

    def decision(self) -> Action:
        """As the machine takes it."""
        return Action(
            kind=self.action,
            reason=self.reason,
            mode=Mode(self.mode) if self.mode else None,
            query=self.query.strip(),
            answer=self.answer.strip(),
            citations=refs_in(self.citations),
            not_in_memory=self.not_in_memory,
        )


class ResolutionReply(BaseModel):
    """A subtask that is answered."""

    subtask: str = Field(description="its id: t1")
    answer: str
    evidence: list[str] = Field(default_factory=list, description="ids that support it: m12")


class AssessReply(BaseModel):
    """What a retrieval settles."""

    resolved: list[ResolutionReply] = Field(default_factory=list)
    reopened: list[str] = Field(default_factory=list, description="ids of subtasks")

    def assessment(self) -> Assessment:
        """As the machine takes it."""
        return Assessment(
            resolved=tuple(
                Resolution(subtask=r.subtask.strip(), answer=r.answer, refs=refs_in(r.evidence))
                for r in self.resolved
            ),
            reopened=tuple(name.strip() for name in self.reopened),
        )


class RewriteReply(BaseModel):
    """A subtask worded anew."""

    id: str
    text: str


class ReplanReply(BaseModel):
    """A repair of the plan."""

    rewrite: list[RewriteReply] = Field(default_factory=list)
    add: list[SubtaskReply] = Field(default_factory=list)
    abandon: list[str] = Field(default_factory=list)

    def edits(self) -> Edits:
        """As the ledger takes it."""
        return Edits(
            rewrite=tuple(Rewrite(id=r.id.strip(), text=r.text) for r in self.rewrite),
            add=tuple(draft.draft() for draft in self.add),
            abandon=tuple(name.strip() for name in self.abandon),
        )


class ConcludeReply(BaseModel):
    """The final answer."""

    comparison: str = Field(default="", description="how the evidence bears on each option")
    option: str | None = Field(default=None, description="one letter, if there are options")
    answer: str = ""
    citations: list[str] = Field(default_factory=list, description="ids of evidence: m12")
    not_in_memory: bool = False

    def conclusion(self) -> Conclusion:
        """As the machine takes it."""
        return Conclusion(
            text=self.answer.strip(),
            option=self.option.strip() if self.option and self.option.strip() else None,
            refs=refs_in(self.citations),
            not_in_memory=self.not_in_memory,
        )
