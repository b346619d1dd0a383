"""What a language model replies in a round of MemDreamer's loop, and what code makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase
from typing import Any, Literal

from pydantic import Field

from agent.reasoners.replies import BaseReply, Text, Texts, refs_in
from agent.reasoners.reply_schemas import cited, narrowed, one_of
from domain.asking import Action, Question

ToolChoice = Literal[
    "get_summary",
    "get_super_events",
    "get_macro_events",
    "get_subgraph",
    "search_nodes",
    "search_by_time",
    "get_relations",
]
NodeKind = Literal["entity", "event", "text"]
Way = Literal["out", "in", "both"]


class ToolArgumentsReply(BaseReply):
    """The arguments of the tool; only those it has."""

    id: str | None = None
    super_id: str | None = None
    macro_ids: Texts | None = None
    macro_id: str | None = None
    query: str | None = None
    top_k: int | None = None
    node_types: list[NodeKind] | None = None
    start: str | None = None
    end: str | None = None
    node_id: str | None = None
    direction: Way | None = None

    def given(self) -> dict[str, Any]:
        """Return the arguments that are not empty."""
        return {
            name: value for name, value in self.model_dump().items() if value not in (None, "", [])
        }


class StepReply(BaseReply):
    """A round: the new note, and the answer or the next tool."""

    reasoning: str = ""
    useful_info: Text = Field(default="", description="the new note, with ids and times")
    can_answer: bool
    answer: Text = Field(default="", description="the letter, or the sentence")
    evidence: Texts = Field(default_factory=list, description="ids such as n12 or e7")
    not_in_memory: bool = False
    need: str = Field(default="", description="what is still missing")
    tool: ToolChoice | None = None
    arguments: ToolArgumentsReply = ToolArgumentsReply()

    @property
    def _ends(self) -> bool:
        return self.can_answer or self.not_in_memory

    def complaints(self, usable: Sequence[str]) -> list[str]:
        """Return what the model is asked to put right."""
        if self._ends:
            given = self.answer.strip() or self.not_in_memory
            return [] if given else ["can_answer is true, but there is no answer"]
        if self.tool not in usable:
            return [f"can_answer is false: name one of the tools {', '.join(usable)}"]
        return []

    def decision(self, question: Question, scored: frozenset[str]) -> Action:
        """Return the action for the machine.

        Args:
            question: what is asked; a tool of ``scored`` scores what it shows by it.
            scored: the tools that need no query.
        """
        note, reason = self.useful_info.strip(), _one_line(self.need or self.reasoning)
        if self._ends:
            return Action(
                kind="answer",
                reason=reason,
                answer=_one_line(self.answer),
                citations=refs_in(self.evidence),
                not_in_memory=self.not_in_memory and not question.options,
                note=note,
            )
        arguments = self.arguments.given()
        query = arguments.pop("query", question.text if self.tool in scored else "")
        return Action(
            kind="search",
            reason=reason,
            mode=self.tool,
            query=_one_line(query),
            arguments=arguments,
            note=note,
        )


def step_form(
    question: Question, usable: Sequence[str], refs: Sequence[str], *, narrow: bool
) -> type[StepReply]:
    """Return the schema of a round: one of the usable tools, one of the options if there are any.

    Args:
        usable: names of tools.
        refs: what may be cited.
        narrow: for a model in this process.
    """
    fields: dict[str, Any] = {"tool": {"anyOf": [one_of(usable), {"type": "null"}]}}
    if question.options:
        fields["answer"] = one_of(["", *ascii_uppercase[: len(question.options)]])
        fields["not_in_memory"] = {"type": "boolean", "enum": [False]}
    if narrow:
        own = cited("evidence", refs)["evidence"]
        fields["evidence"] = own | {"minItems": 0}
    return narrowed(StepReply, fields, narrow)


def _one_line(text: str) -> str:
    return " ".join(text.split())
