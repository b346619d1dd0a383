"""Joins the identities of one person into a character with a number and names.

Every face and voice starts as a character of its own. Accepted statements "this face is this
voice" move the voice to the face's character (section 3.2). Numbers are never reused, and every
change is valid from the clip at which it was learned.
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
"""Support of a model's statement for one clip.

It is below ``ACCEPT_SUPPORT``: a statement for a second clip, or a second of speech with only that
face in view, is needed too.
"""

ACCEPT_SHARE = 0.6
"""A voice's best character must have at least this share, in [0, 1], of the voice's support."""

SPOKEN_SOURCES = ("said", "caption")
"""Sources of names that move with a voice to another character."""


@dataclass(frozen=True)
class NameClaim:
    """A name that a clip states for a tag, with its source (said, read, caption or model)."""

    tag: str
    name: str
    source: str


def add_characters(session: Session, video_id: str, recognised: Recognised, clip: int) -> None:
    """Add a character for each new identity; speakers that the source names keep that name."""
    ids = [identity.id for identity in recognised.new] + [
        identity.id for _, identity in recognised.new_speakers
    ]
    rows = stored.open_characters(session, video_id, ids, clip)
    speaker_rows = rows[len(recognised.new) :]
    for row, (name, identity) in zip(speaker_rows, recognised.new_speakers, strict=True):
        stored.add_name(session, row, name, "caption", clip, identity.id)


def limit_model_statements(statements: Iterable[IdentityStatement]) -> list[IdentityStatement]:
    """Keep one model statement per voice of a clip, with ``MODEL_SUPPORT`` at most.

    Several statements of a model about one voice in one clip are no independent evidence.
    """
    limited: list[IdentityStatement] = []
    model_voices: set[int] = set()
    for statement in statements:
        if not statement.by_model:
            limited.append(statement)
        elif statement.voice not in model_voices:
            model_voices.add(statement.voice)
            limited.append(
                statement.model_copy(update={"support": min(statement.support, MODEL_SUPPORT)})
            )
    return limited


def best_character(
    supports: Sequence[IdentitySupport], character_of: Mapping[int, int]
) -> int | None:
    """Return the character that one voice belongs to according to the statements.

    Args:
        supports: All support for the voice.
        character_of: The character row of each face row.

    Returns:
        The character row with the most support, on a tie that of the lowest face number; None while
        its support is below ``ACCEPT_SUPPORT`` or its share below ``ACCEPT_SHARE``.
    """
    totals: dict[int, float] = {}
    for support in sorted(supports, key=lambda item: item.face_number):
        row = character_of[support.face_id]
        totals[row] = totals.get(row, 0.0) + support.total
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

    A single statement of a language model is recorded, but never suffices to move a voice.
    """
    statements = limit_model_statements(statements)
    ids = {
        (identity.kind, identity.number): identity.id for identity in people.identities().values()
    }
    stated = {(IdentityKind.FACE, statement.face) for statement in statements}
    stated |= {(IdentityKind.VOICE, statement.voice) for statement in statements}
    ids |= identity_rows(session, video_id, stated - ids.keys())
    add_statements(session, video_id, statements, ids)
    voices = sorted({ids[(IdentityKind.VOICE, statement.voice)] for statement in statements})
    supports = identity_support(session, voices) if voices else []
    for voice in voices:
        of_voice = [support for support in supports if support.voice_id == voice]
        characters = stored.characters_with(
            session, [voice, *(support.face_id for support in of_voice)], clip
        )
        owner = {member: character for character in characters for member in character.members}
        rows = {member: character.id for member, character in owner.items()}
        best = best_character(of_voice, rows)
        if best is not None and best != rows[voice]:
            target = next(character for character in characters if character.id == best)
            source = owner[voice]
            stored.end_member(session, source.id, voice, clip)
            stored.add_member(session, target.id, voice, clip)
            existing_names = {name.text.casefold() for name in target.names}
            for name in _names_to_move(source):
                stored.end_name(session, source.id, name.text, clip)
                if name.text.casefold() not in existing_names:
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
        for character in stored.characters_with(session, rows, clip):
            existing_names = {name.text.casefold() for name in character.names}
            name = escape_tags(claim.name)
            if name.casefold() not in existing_names:
                row = next(row for row in rows if row in character.members)
                stored.add_name(session, character.id, name, claim.source, clip, row)


def source_of_name(tag: str, writer_source: str) -> str:
    """Return a name's source: the writer's, else read for a face and said for a voice."""
    if writer_source:
        return writer_source
    match = TAG.fullmatch(tag)
    return "read" if match and match[1] == IdentityKind.FACE else "said"


def identities_of_tags(people: ClipPeople, tags: Iterable[str]) -> list[Identity]:
    """Return the identities of the clip that these tags stand for, without repeats."""
    identities = [identity for tag in tags for identity in people.members(tag)]
    return list({identity.id: identity for identity in identities}.values())
