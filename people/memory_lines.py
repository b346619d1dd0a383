"""Formats memories as lines of text with speaker and source; pure."""

from __future__ import annotations

from collections.abc import Sequence

from domain.memories import (
    Memory,
    MemoryDraft,
    MemoryKind,
    MemorySource,
    Segment,
    with_attribution,
)
from domain.people import TAG
from people.clip_people import ClipPeople


def format_line(memory: MemoryDraft | Memory, people: ClipPeople) -> str:
    """Format a memory: ``Omar: text`` if said, ``On screen: text`` if read, else the text.

    Tags are replaced by known names, except in lines that state a name.
    """
    text = memory.text if _is_name_statement(memory) else people.replace_tags(memory.text)
    if memory.source == MemorySource.READ and not memory.tags:
        return f"On screen: {text}"
    speaker = people.label(memory.speaker) if memory.speaker else None
    return with_attribution(text, memory.source, speaker)


def display_line(memory: Memory, people: ClipPeople) -> str:
    """Format a memory for display, with one name or number for each person."""
    text = format_line(memory, people)
    return text if _is_name_statement(memory) else people.display(text)


def display_segment(segment: Segment, people: ClipPeople) -> Segment:
    """Return a segment with names in place of tags, and of replaced names, where known."""
    texts = {
        "label": people.update_names(segment.label),
        "summary": people.update_names(segment.summary),
    }
    return segment.model_copy(update=texts)


def _is_name_statement(memory: MemoryDraft | Memory) -> bool:
    return memory.kind == MemoryKind.CHARACTER and " is named " in memory.text


def search_text(memory: MemoryDraft | Memory, people: ClipPeople) -> str:
    """Return the text that a memory's vector is computed from, after the speaker's name if known.

    Questions name people; a tag would only be noise to an embedding.
    """
    text = people.replace_tags(memory.text)
    speaker = people.label(memory.speaker) if memory.speaker else ""
    return text if not speaker or TAG.fullmatch(speaker) else f"{speaker}: {text}"


def format_clip(drafts: Sequence[MemoryDraft], people: ClipPeople) -> str:
    """Format all lines of a clip, in order, one per line."""
    return "\n".join(format_line(draft, people) for draft in drafts)
