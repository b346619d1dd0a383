"""Lines that go on over a clip's border: open sentences, and text that stays on screen.

A line that goes on is written anew in the later clip with its whole span, and supersedes the line
of the earlier clip. A view as of the earlier clip still shows that one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sqlalchemy.orm import Session

from domain.media import Clip, Percept, Utterance
from domain.memories import SEPARATOR, Memory, MemoryDraft, MemoryKind, MemorySource
from domain.sentences import continues_sentence, join_utterances
from perception.screen_text import same_text
from perception.speech import SENTENCE_PAUSE_MS, without_cut
from store.queries.memories import memories_of_clips

SURROUNDINGS = 4
"""So many texts that stay while others change are no title of both: a menu, a list of files."""


def may_continue(percept: Percept) -> bool:
    """Check whether a clip has speech that was recognised, or text on screen.

    Transcripts that came with a video are lines already, and name no language.
    """
    return bool(percept.screen_texts) or any(one.language for one in percept.utterances)


def continue_speech(drafts: Sequence[MemoryDraft], before: Iterable[Memory]) -> list[MemoryDraft]:
    """Join the first line of a clip's speech to the sentence that the clip before left open.

    Args:
        drafts: The lines of the clip's speech, in order of time.
        before: The lines of the clip before.
    """
    said = [one for one in before if _is_episodic(one, MemorySource.SAID)]
    if not drafts or not said:
        return [*drafts]
    last, first = max(said, key=lambda one: (one.span.end_ms, one.id)), drafts[0]
    going_on = _utterance(first)
    left_open = without_cut(_utterance(last), going_on)
    same_speaker = last.speaker == first.speaker
    if not same_speaker or not continues_sentence(left_open, going_on, SENTENCE_PAUSE_MS):
        return [*drafts]
    whole = join_utterances(left_open, going_on)
    joined = first.model_copy(
        update={"text": whole.text, "span": whole.span, "contradicts": (last.id,)}
    )
    return [joined, *drafts[1:]]


def continue_screen_text(
    drafts: Sequence[MemoryDraft], before: Iterable[Memory]
) -> list[MemoryDraft]:
    """Extend texts of the clip before that are still on screen, and leave them out of new lines.

    Where ``SURROUNDINGS`` of a line's parts are, as the menus around a page that was turned, they
    become a line of their own beside it, which later clips extend.

    Args:
        drafts: The lines of the clip's text on screen, parts joined by ``SEPARATOR``.
        before: The lines of the clip before.
    """
    remaining = [(one, one.text.split(SEPARATOR)) for one in drafts]
    extended = []
    for known in before:
        if not _is_episodic(known, MemorySource.READ):
            continue
        parts = known.text.split(SEPARATOR)
        still = [draft for draft, own in remaining if any(_is_among(part, own) for part in parts)]
        shown = [part for _, own in remaining for part in own]
        left = [part for part in parts if _is_among(part, shown)]
        if still and (left == parts or len(left) >= SURROUNDINGS):
            span = known.span
            for draft in still:
                span = span.union(draft.span)
            replaced = (known.id,) if left == parts else ()
            update = {"text": SEPARATOR.join(left), "span": span, "contradicts": replaced}
            extended.append(still[0].model_copy(update=update))
            remaining = [
                (draft, [part for part in own if not _is_among(part, parts)])
                for draft, own in remaining
            ]
    new = [
        draft.model_copy(update={"text": SEPARATOR.join(own)}) for draft, own in remaining if own
    ]
    return [*extended, *new]


def _is_episodic(line: Memory, source: MemorySource) -> bool:
    return line.kind == MemoryKind.EPISODIC and line.source == source


def _is_among(part: str, parts: Iterable[str]) -> bool:
    return any(same_text(part, other) for other in parts)


def _utterance(line: Memory | MemoryDraft) -> Utterance:
    return Utterance(span=line.span, text=line.text, speaker=line.speaker)


# Formats the sounds of a clip as memories, and marks those continued from the clip before.

_HEARD, _CONTINUED, _END = "Heard: ", ", continued", "."


def sound_lines(percept: Percept) -> Iterator[MemoryDraft]:
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
