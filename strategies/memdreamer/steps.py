"""A round of MemDreamer's loop: what a language model is shown, and what its reply becomes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any, Literal

from pydantic import Field

from agent.harness.inform import question_lines, quote_untrusted
from agent.reasoners.port import CompletedSearch
from agent.reasoners.replies import BaseReply, Text, Texts, cited, narrowed, one_of, refs_in
from agent.strategy import Tool
from domain.asking import Action, Evidence, Question
from domain.trajectory import EvidenceRetrieved
from domain.words import one_line
from models.messages import prompts_beside
from strategies.memdreamer.hierarchy_view import macros_named
from strategies.memdreamer.settings import GET_SUBGRAPH, SEARCH_NODES
from strategies.policy_parts import after_complaint

prompt = prompts_beside(__file__)

# What MemDreamer's loop shows a language model, within fixed room whatever was found; pure.
#
# Observations of earlier rounds are left out: only the note, the searches and the macro events that
# were not opened go on.

FOUND_BYTES, NOTE_BYTES, SEARCH_BYTES = 9_600, 2_400, 120
"""Room for what the last search showed, for the note and for each search; about 3 to a token."""
LINE_BYTES, LEAST_BYTES = 300, 80
"""Room for a line of refs, and the least for what a piece says."""
MOST_UNOPENED = 40
"""Macro events not opened yet that are listed, the latest named first."""
NOTHING = "(nothing yet)"
HIDDEN = frozenset({"query", "options"})
"""Arguments that score what is shown: code gives them."""


def step_system(tools: Iterable[Tool], rounds: int, *, options: bool) -> str:
    choice = prompt("step_options" if options else "step_open")
    named = "\n".join(f"- {tool.name}({_signature(tool)}): {tool.description}" for tool in tools)
    return prompt("step_system", tools=named, rounds=rounds, choice=f"\n{choice}")


def step_page(
    question: Question,
    note: str,
    searches: Sequence[CompletedSearch],
    number: int,
    rounds: int,
    complaint: str = "",
) -> str:
    """Return the request for a round; ``complaint`` is about the last reply."""
    left = unopened(searches)
    more = f" and {len(left) - MOST_UNOPENED} more" if len(left) > MOST_UNOPENED else ""
    page = prompt(
        "step",
        round=number,
        rounds=rounds,
        question=question_lines(question),
        note=_note(note),
        searches="; ".join(search_line(one.found) for one in searches) or NOTHING,
        unopened=", ".join(left[:MOST_UNOPENED]) + more or "none",
        found=found_block(searches[-1].found) if searches else NOTHING,
    )
    return after_complaint(page, complaint, 600)


def conclude_page(
    question: Question, note: str, searches: Sequence[CompletedSearch], complaint: str = ""
) -> str:
    """Return the request for the answer, where no round gave one that can be taken."""
    page = prompt(
        "conclude",
        question=question_lines(question),
        note=_note(note),
        found=found_block(searches[-1].found) if searches else NOTHING,
    )
    return after_complaint(page, complaint, 600)


def search_line(found: EvidenceRetrieved) -> str:
    """Return a search as the list of those made shows it."""
    # Sorted: arguments that come from the record may be in another order.
    asked = sorted((name, value) for name, value in found.arguments.items() if name not in HIDDEN)
    said = [f'"{found.query}"'] if found.mode == SEARCH_NODES else []
    said += [f"{name}={_value(value)}" for name, value in asked]
    refused = " (refused)" if found.refused else ""
    return _within(quote_untrusted(f"{found.mode}({', '.join(said)}){refused}"), SEARCH_BYTES)


def unopened(searches: Sequence[CompletedSearch]) -> list[str]:
    """Return the macro events that were named but not opened, the latest named first."""
    opened = {
        str(one.found.arguments.get("macro_id", "")).strip("[] ")
        for one in searches
        if one.found.mode == GET_SUBGRAPH and not one.found.refused
    }
    named = [
        ref
        for one in reversed(searches)
        for piece in one.found.evidence
        for ref in macros_named(piece)
    ]
    return [ref for ref in dict.fromkeys(named) if ref not in opened]


@dataclass(frozen=True)
class _Shown:
    """A piece of evidence: what comes before what it says, that, and its lines of refs."""

    head: str
    said: str
    refs: tuple[str, ...]

    @property
    def fixed(self) -> int:
        """Return the bytes that it takes besides what it says."""
        return len(self.head.encode()) + sum(len(one.encode()) + 3 for one in self.refs) + 1

    def text(self, room: int) -> str:
        """Return it with so many bytes of what it says."""
        lines = [f"{self.head}{_within(self.said, room)}", *(f"  {one}" for one in self.refs)]
        return "\n".join(lines)


def found_block(found: EvidenceRetrieved, room: int = FOUND_BYTES) -> str:
    """Return what a search showed, or why it was refused, in so many bytes.

    Where that is more, what the pieces say is cut, the longest first; then those furthest from the
    question are left out.
    """
    head = f"{search_line(found)}: {quote_untrusted(found.searched)}"
    if found.refused:
        return f"<found>\n{search_line(found)}\n{quote_untrusted(found.refused)}\n</found>"
    several = len({piece.video for piece in found.evidence}) > 1
    pieces = [_shown(piece, several) for piece in found.evidence]
    # The pieces that fit with the least of what each says: the first, then those nearest to the
    # question.
    scores = [piece.score for piece in found.evidence]
    places, taken = list[int](), 0
    for place in sorted(range(len(pieces)), key=lambda n: (n > 0, -scores[n], n)):
        piece = pieces[place]
        taken += piece.fixed + min(LEAST_BYTES, len(piece.said.encode()))
        if taken > room:
            break
        places.append(place)
    fitting = [pieces[place] for place in sorted(places)]
    left = room - sum(one.fixed for one in fitting)
    most = _share([len(one.said.encode()) for one in fitting], left)
    lines = [one.text(most) for one in fitting]
    if len(fitting) < len(pieces):
        lines.append(f"({len(pieces) - len(fitting)} more are not shown: ask for less at a time)")
    return "\n".join(["<found>", head, *(lines or ["(nothing)"]), "</found>"])


def _shown(piece: Evidence, several: bool) -> _Shown:
    first, *more = (quote_untrusted(line, 10_000) for line in piece.text.splitlines() or [""])
    of = f" of {quote_untrusted(piece.video, 8)}" if several else ""
    refs = tuple(_within(line, LINE_BYTES) for line in more)
    return _Shown(f"[{piece.ref}] {piece.span}{of} ", first, refs)


def _share(sizes: Sequence[int], room: int) -> int:
    """Return the most bytes that each may take so that all fit, the longest being cut."""
    left, count = room, len(sizes)
    for size in sorted(sizes):
        if size * count > left:
            return max(0, left // count)
        left, count = left - size, count - 1
    return max(sizes, default=0)


def _note(note: str) -> str:
    return _within(quote_untrusted(note, NOTE_BYTES), NOTE_BYTES) or NOTHING


def _within(text: str, room: int) -> str:
    """Return as much of a text as takes so many bytes."""
    if len(text.encode()) <= room:
        return text
    return text.encode()[: max(0, room - 3)].decode(errors="ignore").rstrip() + "…"


def _signature(tool: Tool) -> str:
    fields = tool.arguments.model_fields
    shown = ["query"] if fields["query"].is_required() else []
    shown += [name for name in fields if name not in HIDDEN]
    return ", ".join(
        name
        if fields[name].is_required() or fields[name].default in (None, ())
        else f"{name}={_value(fields[name].default)}"
        for name in shown
    )


def _value(value: object) -> str:
    return "|".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


# What a language model replies in a round of MemDreamer's loop, and what code makes of it.

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
        note, reason = self.useful_info.strip(), one_line(self.need or self.reasoning)
        if self._ends:
            return Action(
                kind="answer",
                reason=reason,
                answer=one_line(self.answer),
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
            query=one_line(query),
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
