"""Joins the identities of one person into a character with a number and names.

Every face and voice starts as a character of its own. Accepted statements "this face is this
voice" move the voice to the face's character. Numbers are never given again, and every change
holds from the clip at which it was learned.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from domain.media import IdentityKind
from domain.people import TAG, Identity, IdentityStatement, escape_tags
from people.clip_people import ClipPeople
from people.identities import Recognised
from store.queries import characters as stored
from store.queries.characters import CharacterAt
from store.queries.identities import (
    IdentitySupport,
    add_statements,
    identity_rows,
    identity_support,
)

ACCEPT_SUPPORT = 4.0
"""Support at which a statement is accepted; one second of speech with one face in view is 1."""

MODEL_SUPPORT = 3.0
"""What a model's word for a clip counts: less than it takes, so that it needs the word for another
clip, or a second of speech with that face alone in view."""

ACCEPT_SHARE = 0.6
"""A voice's best character must have this much of all the support that the voice has."""

SPOKEN_SOURCES = ("said", "caption")
"""Sources of names that a voice brings along."""


@dataclass(frozen=True)
class NameClaim:
    """A name for whoever a tag stands for, and its source (said, read, caption, model)."""

    tag: str
    name: str
    source: str


def add_characters(session: Session, video_id: str, recognised: Recognised, clip: int) -> None:
    """Add a character for each new identity; speakers that the source names keep that name."""
    ids = [one.id for one in recognised.new] + [one.id for _, one in recognised.new_speakers]
    rows = stored.open_characters(session, video_id, ids, clip)
    speaker_rows = rows[len(recognised.new) :]
    for row, (name, one) in zip(speaker_rows, recognised.new_speakers, strict=True):
        stored.add_name(session, row, name, "caption", clip, one.id)


def limit_model_statements(statements: Iterable[IdentityStatement]) -> list[IdentityStatement]:
    """Keep one model statement per voice of a clip, with ``MODEL_SUPPORT`` at most.

    What a model says of one clip in several ways is one statement.
    """
    kept: list[IdentityStatement] = []
    model_voices: set[int] = set()
    for one in statements:
        if not one.by_model:
            kept.append(one)
        elif one.voice not in model_voices:
            model_voices.add(one.voice)
            kept.append(one.model_copy(update={"support": min(one.support, MODEL_SUPPORT)}))
    return kept


def best_character(
    supports: Sequence[IdentitySupport], character_of: Mapping[int, int]
) -> int | None:
    """Return the character that one voice belongs to by what was stated.

    Args:
        supports: All support for the voice.
        character_of: The character row of each face row.

    Returns:
        The character row with the most support, the one stated for the lowest face where equal;
        None while there is too little, or too much of it for others.
    """
    totals: dict[int, float] = {}
    for one in sorted(supports, key=lambda support: support.face_number):
        row = character_of[one.face_id]
        totals[row] = totals.get(row, 0.0) + one.total
    best = max(totals, key=lambda row: totals[row], default=None)
    if best is None or totals[best] < ACCEPT_SUPPORT:
        return None
    return best if totals[best] >= ACCEPT_SHARE * sum(totals.values()) else None


def join_voices(
    session: Session,
    video_id: str,
    statements: Sequence[IdentityStatement],
    people: ClipPeople,
    clip: int,
) -> None:
    """Record statements, and move each voice to the character that now has most support.

    A language model's statement never suffices by itself: it is kept until something bears it out.
    """
    statements = limit_model_statements(statements)
    ids = {(one.kind, one.number): one.id for one in people.identities().values()}
    stated = {(IdentityKind.FACE, one.face) for one in statements}
    stated |= {(IdentityKind.VOICE, one.voice) for one in statements}
    ids |= identity_rows(session, video_id, stated - ids.keys())
    add_statements(session, video_id, statements, ids)
    voices = sorted({ids[(IdentityKind.VOICE, one.voice)] for one in statements})
    supports = identity_support(session, voices) if voices else []
    for voice in voices:
        of_voice = [one for one in supports if one.voice_id == voice]
        _join(session, voice, of_voice, clip)


def _join(session: Session, voice: int, supports: Sequence[IdentitySupport], clip: int) -> None:
    found = stored.characters_with(session, [voice, *(one.face_id for one in supports)], clip)
    owner = {member: one for one in found for member in one.members}
    rows = {member: one.id for member, one in owner.items()}
    best = best_character(supports, rows)
    if best is not None and best != rows[voice]:
        target = next(one for one in found if one.id == best)
        _move(session, voice, owner[voice], target, clip)


def _move(
    session: Session, voice: int, source: CharacterAt, target: CharacterAt, clip: int
) -> None:
    stored.end_member(session, source.id, voice, clip)
    stored.add_member(session, target.id, voice, clip)
    taken = {name.text.casefold() for name in target.names}
    for name in _names_to_move(source):
        stored.end_name(session, source.id, name.text, clip)
        if name.text.casefold() not in taken:
            stored.add_name(session, target.id, name.text, name.source, clip, voice)
    if len(source.members) == 1:
        stored.end_character(session, source.id, clip)


def _names_to_move(source: CharacterAt) -> list[stored.Name]:
    """Return names that move with a voice: all of its own character's, else the spoken ones."""
    if len(source.members) == 1:
        return list(source.names)
    only_voice = len(source.character.voices) == 1
    return [name for name in source.names if only_voice and name.source in SPOKEN_SOURCES]


def name_characters(
    session: Session, claims: Iterable[NameClaim], people: ClipPeople, clip: int
) -> None:
    """Name characters; a name that a character already has is not added again."""
    for claim in claims:
        rows = [identity.id for identity in people.members(claim.tag)]
        for found in stored.characters_with(session, rows, clip):
            taken = {name.text.casefold() for name in found.names}
            name = escape_tags(claim.name)
            if name.casefold() not in taken:
                row = next(row for row in rows if row in found.members)
                stored.add_name(session, found.id, name, claim.source, clip, row)


def source_of_name(tag: str, writer_source: str) -> str:
    """Return a name's source: the writer, else read for a face and said for a voice."""
    if writer_source:
        return writer_source
    found = TAG.fullmatch(tag)
    return "read" if found and found[1] == IdentityKind.FACE else "said"


def identities_of_tags(people: ClipPeople, tags: Iterable[str]) -> list[Identity]:
    """Return the identities of the clip that these tags stand for, without repeats."""
    every = [one for tag in tags for one in people.members(tag)]
    return list({one.id: one for one in every}.values())
