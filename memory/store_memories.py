"""Stores the memories of a clip: links to identities, confirmed and contradicted facts."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.orm import Session

from domain.memories import PRESENCE_SOURCES, Line, MemoryDraft, MemoryKind, MemorySource
from domain.settings import Settings
from people.characters import ClipPeople, identities_of_tags
from store.queries import memories
from store.queries.characters import learned_with


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
