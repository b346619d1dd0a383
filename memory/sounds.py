"""Formats the sounds of a clip as memories, and marks those continued from the clip before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlalchemy.orm import Session

from domain.media import Clip, Percept
from domain.memories import Memory, MemoryDraft, MemoryKind, MemorySource
from store.queries.memories import memories_of_clips

_HEARD, _CONTINUED, _END = "Heard: ", ", continued", "."


def sound_lines(percept: Percept) -> Iterator[MemoryDraft]:
    """Yield one line for each sound of a clip."""
    for sound in percept.sounds:
        yield MemoryDraft(
            kind=MemoryKind.EPISODIC,
            text=f"{_HEARD}{sound.kind}{_END}",
            span=sound.span,
            source=MemorySource.SOUND,
        )


def mark_continued(
    session: Session, video_id: str, clip: Clip, drafts: Sequence[MemoryDraft], pause_ms: int
) -> Sequence[MemoryDraft]:
    """Mark sounds that continue from the previous clip, in a clip's drafts.

    Args:
        session: An open transaction.
        video_id: The video.
        clip: The clip.
        drafts: The clip's drafts.
        pause_ms: The longest pause within one sound, in milliseconds.
    """
    early = clip.span.start_ms + pause_ms
    if clip.index == 0 or not any(
        _is_sound(draft) and draft.span.start_ms <= early for draft in drafts
    ):
        return drafts
    stored = memories_of_clips(session, video_id, [clip.index - 1], clip.index)
    return continue_sounds(drafts, [memory.memory for memory in stored], pause_ms)


def continue_sounds(
    drafts: Sequence[MemoryDraft], previous: Sequence[Memory], pause_ms: int
) -> list[MemoryDraft]:
    """Mark drafts of sounds that ended in ``previous`` at most ``pause_ms`` before."""
    ends = {_kind(line): line.span.end_ms for line in previous if _is_sound(line)}
    return [
        draft.model_copy(update={"text": f"{_HEARD}{_kind(draft)}{_CONTINUED}{_END}"})
        if _is_sound(draft)
        and (ended_ms := ends.get(_kind(draft))) is not None
        and draft.span.start_ms - ended_ms <= pause_ms
        else draft
        for draft in drafts
    ]


def _is_sound(line: MemoryDraft | Memory) -> bool:
    return line.source == MemorySource.SOUND


def _kind(line: MemoryDraft | Memory) -> str:
    """Return the kind of sound that a line says is heard."""
    return line.text.removeprefix(_HEARD).removesuffix(_END).removesuffix(_CONTINUED)
