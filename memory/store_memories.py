"""Stores the memories of a clip: links to identities, confirmed and contradicted facts."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.orm import Session

from domain.memories import MemoryDraft, MemoryKind
from domain.settings import Settings
from people.characters import identities_of_tags
from people.clip_people import ClipPeople
from store.queries.memories import (
    Vector,
    add_memories,
    closest_fact,
    link_memories,
    strengthen,
    supersede,
)


def store_memories(
    session: Session,
    video_id: str,
    clip: int,
    drafts: Sequence[MemoryDraft],
    vectors: Sequence[Vector],
    encoder: str,
    people: ClipPeople,
    settings: Settings,
) -> None:
    """Store drafts with their vectors; a known fact is strengthened instead (section 3.2).

    ``encoder`` made the vectors; facts with a vector of another one are not compared.

    A fact is known if an open semantic memory of exactly the same identities has a cosine above
    ``settings.memory.same_fact`` to it. Memories that a draft contradicts are closed first, so
    that they do not count as the same fact.
    """
    contradicted = sorted({old for draft in drafts for old in draft.contradicts})
    if contradicted:
        supersede(session, video_id, contradicted, clip)
    episodic = [index for index, draft in enumerate(drafts) if draft.kind == MemoryKind.EPISODIC]
    _add(
        session,
        video_id,
        clip,
        [drafts[n] for n in episodic],
        [vectors[n] for n in episodic],
        encoder,
        people,
    )
    for draft, vector in zip(drafts, vectors, strict=True):
        if draft.kind != MemoryKind.EPISODIC:
            same_fact = settings.memory.same_fact
            identities = [identity.id for identity in identities_of_tags(people, draft.tags)]
            closest = closest_fact(session, video_id, identities, vector, encoder)
            if closest is not None and closest[1] > same_fact:
                strengthen(session, [closest[0]], clip)
            else:
                _add(session, video_id, clip, [draft], [vector], encoder, people)


def _add(
    session: Session,
    video_id: str,
    clip: int,
    drafts: Sequence[MemoryDraft],
    vectors: Sequence[Vector],
    encoder: str,
    people: ClipPeople,
) -> None:
    ids = add_memories(session, video_id, clip, drafts, vectors, encoder)
    links = [
        (memory_id, identity.id)
        for memory_id, draft in zip(ids, drafts, strict=True)
        for identity in identities_of_tags(people, draft.tags)
    ]
    link_memories(session, links)
