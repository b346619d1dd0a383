"""Stores the lines of a clip: their links and strengths, and those that go on over its border.

Open sentences go on, and text that stays on screen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sqlalchemy.orm import Session

from domain.media import Clip, Percept, Utterance
from domain.memories import (
    PRESENCE_SOURCES,
    SEPARATOR,
    Line,
    Memory,
    MemoryDraft,
    MemoryKind,
    MemorySource,
)
from domain.sentences import continues_sentence, join_utterances
from domain.settings import Settings
from people.characters import ClipPeople, identities_of_tags
from perception.hearing import SENTENCE_PAUSE_MS, without_cut
from perception.keyframes import same_text
from store.queries import memories
from store.queries.characters import learned_with
from store.queries.memories import memories_of_clips

SURROUNDINGS = 4
"""So many texts that stay while others change are no title of both: a menu, a list of files."""


def may_continue(percept: Percept) -> bool:
    """Check whether a clip has speech that was recognised, or text on screen.

    Transcripts that came with a video are lines already, and name no language.
    """
    return bool(percept.screen_texts) or any(one.language for one in percept.utterances)


# A line that goes on is written anew in the later clip with its whole span, and supersedes the line
# of the earlier clip. A view as of the earlier clip still shows that one.
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


def store_memories(
    session: Session,
    video_id: str,
    clip: int,
    drafts: Sequence[MemoryDraft],
    vectors: Sequence[memories.Vector],
    people: ClipPeople,
    settings: Settings,
) -> None:
    """Store drafts with their vectors; a known fact is strengthened instead (section 3.2).

    A fact is known if an open semantic memory of exactly the same people, whether seen or heard,
    has a cosine above ``settings.memory.same_fact`` to it. Memories that a draft contradicts are
    closed first, so that they do not count as the same fact.
    """
    contradicted = sorted({old for draft in drafts for old in draft.contradicts})
    if contradicted:
        memories.supersede(session, video_id, contradicted, clip)
    episodic = [index for index, draft in enumerate(drafts) if draft.kind == MemoryKind.EPISODIC]
    _add(
        session,
        video_id,
        clip,
        [drafts[n] for n in episodic],
        [vectors[n] for n in episodic],
        people,
    )
    for draft, vector in zip(drafts, vectors, strict=True):
        if draft.kind != MemoryKind.EPISODIC:
            same_fact = settings.memory.same_fact
            mentioned = {identity.id for identity in identities_of_tags(people, draft.tags)}
            known = [set(one.members) for one in learned_with(session, video_id, mentioned, clip)]
            others = mentioned.difference(*known)
            about = [*known, *({identity} for identity in sorted(others))]
            closest = memories.closest_fact(session, video_id, about, vector)
            if closest is not None and closest[1] > same_fact:
                memories.strengthen(session, [closest[0]], clip)
            else:
                _add(session, video_id, clip, [draft], [vector], people)


def supersede_local_lines(
    session: Session, video_id: str, clip: int, drafts: Sequence[MemoryDraft]
) -> tuple[list[MemoryDraft], int]:
    """Supersede what a clip was stored with while its model failed, except for quotations.

    Returns:
        What the clip is to have: first those of ``drafts`` that are stored, and how many they are,
        then what is new. A quotation that is no longer stored was deleted since, and is not new.
    """
    rows = memories.memories_of_clips(session, video_id, [clip], clip)
    stored = {_line(row.memory): row.memory for row in rows}
    made = {_line(draft) for draft in drafts}
    local = PRESENCE_SOURCES
    gone = [m.id for line, m in stored.items() if line not in made and m.source in local]
    memories.supersede(session, video_id, gone, clip)
    known = [draft for draft in drafts if _line(draft) in stored]
    possible = {*PRESENCE_SOURCES, MemorySource.MODEL}
    new = [draft for draft in drafts if _line(draft) not in stored and draft.source in possible]
    return [*known, *new], len(known)


def _line(memory: Line) -> tuple[object, ...]:
    return memory.kind, memory.source, memory.text, memory.span, memory.speaker


def _add(
    session: Session,
    video_id: str,
    clip: int,
    drafts: Sequence[MemoryDraft],
    vectors: Sequence[memories.Vector],
    people: ClipPeople,
) -> None:
    ids = memories.add_memories(session, video_id, clip, drafts, vectors)
    links = [
        (memory_id, identity.id)
        for memory_id, draft in zip(ids, drafts, strict=True)
        for identity in identities_of_tags(people, draft.tags)
    ]
    memories.link_memories(session, links)
