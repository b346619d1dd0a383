"""Conversations of questions and recorded runs, as chat templates take them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from domain.asking import Evidence, Question
from domain.time import format_clock
from domain.trajectory import Acted, Ended, Event, EvidenceRetrieved

SYSTEM = Path(__file__).parents[1] / "prompts" / "train.md"
SHOWN = 20
"""Pieces of evidence that a tool's result shows at most."""
LONGEST = 600
"""Characters of a piece of evidence that are shown."""

Message = dict[str, Any]


def prompt_of(question: Question) -> list[Message]:
    """Return the messages that a question is asked with."""
    lines = [question.text]
    lines += [f"{ascii_uppercase[n]}. {option}" for n, option in enumerate(question.options)]
    if question.as_of_ms is not None:
        lines.append(f"It is asked at {format_clock(question.as_of_ms)} of the video.")
    return [
        {"role": "system", "content": SYSTEM.read_text(encoding="utf-8").strip()},
        {"role": "user", "content": "\n".join(lines)},
    ]


def completion_of(events: Sequence[Event]) -> list[Message]:
    """Return what a recorded run did: calls of tools with their results, then its answer."""
    messages: list[Message] = []
    reason = ""
    for event in events:
        if isinstance(event, Acted):
            reason = event.action.reason if event.action else ""
        elif isinstance(event, EvidenceRetrieved) and event.round > 0:
            messages += _tool_use(event, reason)
            reason = ""
    return [*messages, *_answer(events)]


def _tool_use(found: EvidenceRetrieved, reason: str) -> Iterator[Message]:
    name = str(found.mode)
    arguments = {**({"query": found.query} if found.query else {}), **found.arguments}
    call = {"type": "function", "function": {"name": name, "arguments": arguments}}
    yield {"role": "assistant", "content": reason, "tool_calls": [call]}
    text = found.refused or found_text(found.evidence, nothing_close=found.nothing_close)
    yield {"role": "tool", "name": name, "content": text}


def _answer(events: Sequence[Event]) -> Iterator[Message]:
    answers = [event.answer for event in events if isinstance(event, Ended) and event.answer]
    for answer in answers[-1:]:
        given = f"\\boxed{{{answer.option}}}" if answer.option else answer.text
        yield {"role": "assistant", "content": given}


def found_text(evidence: Iterable[Evidence], *, nothing_close: bool) -> str:
    """Return what a tool found as text: a line for each piece, best first, with ref and time."""
    pieces = list(evidence)[:SHOWN]
    lines = [
        f"[{one.ref}] {one.span} {' '.join(one.full_text.split())[:LONGEST]}" for one in pieces
    ]
    if not lines:
        return "Nothing was found."
    return "\n".join((["Nothing is close; the nearest:"] if nothing_close else []) + lines)
