"""Who is who in a video as of a clip, with what people corrected.

A view as of a moment never shows what was watched later. Corrections are another matter: they are
about what is true and hold at every moment, so that a question as of minute five knows them, even
if they were made at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from sqlalchemy.orm import Session

from domain.media import IdentityKind
from domain.memories import Scope
from domain.people import Character, Identity
from people.clip_people import ClipPeople
from people.identities import Recognised
from people.overlay import LearnedPeople, Overlay, apply_overlay, overlay_of
from store.queries import characters as stored
from store.queries.characters import CharacterAt, Name
from store.queries.corrections import (
    Origin,
    corrected_videos,
    corrections_of,
    learned_names,
    origins_of,
    statements_until,
)


def characters_at(session: Session, video_id: str, clip: int) -> list[CharacterAt]:
    """Return the characters of a video after ``clip``, by number, with corrections applied."""
    return characters_in_view(session, [Scope(video=video_id, last_clip=clip)])[video_id]


def characters_in_view(
    session: Session, scopes: Sequence[Scope]
) -> Mapping[str, list[CharacterAt]]:
    """Return the characters of each video as of its scope, by number, with corrections applied."""
    found = stored.characters_in_view(session, scopes)
    corrected = corrected_videos(session, [scope.video for scope in scopes])
    return {
        scope.video: _with_corrections(session, scope, found[scope.video])
        if scope.video in corrected
        else [_with_joined_numbers(one, one.began) for one in found[scope.video]]
        for scope in scopes
    }


def _with_corrections(
    session: Session, scope: Scope, found: list[CharacterAt]
) -> list[CharacterAt]:
    overlay = overlay_of(corrections_of(session, scope.video))
    origins = {one.identity: one for one in origins_of(session, scope.video)}
    if overlay:
        found = _apply_overlay(session, scope.video, scope.last_clip, found, origins, overlay)
    return [_with_joined_numbers(one, [origins[row].began for row in one.members]) for one in found]


def people_as_of(session: Session, scope: Scope) -> list[Character]:
    """Return the characters of a video as they were known as of ``scope``, by number."""
    return people_in_view(session, [scope])[scope.video]


def people_in_view(session: Session, scopes: Sequence[Scope]) -> dict[str, list[Character]]:
    """Return the characters of each video as they were known as of its scope, by number."""
    found = characters_in_view(session, scopes)
    return {video: [one.character for one in people] for video, people in found.items()}


def people_of_clip(
    session: Session, video_id: str, recognised: Recognised, clip: int
) -> ClipPeople:
    """Return the people of a clip with what is known of them so far, corrections applied."""
    rows = {one.id for one in _identities(recognised)}
    overlay = overlay_of(corrections_of(session, video_id))
    if overlay is None:
        return learned_people(session, recognised, clip)
    found = stored.characters_at(session, video_id, clip)
    origins = {one.identity: one for one in origins_of(session, video_id)}
    every = _apply_overlay(session, video_id, clip, found, origins, overlay)
    return _clip_people(recognised, [one for one in every if rows.intersection(one.members)])


def learned_people(session: Session, recognised: Recognised, clip: int) -> ClipPeople:
    """Return the people of a clip as they were learned, without corrections."""
    rows = [one.id for one in _identities(recognised)]
    return _clip_people(recognised, stored.characters_with(session, rows, clip))


def people_for_writer(
    session: Session, video_id: str, recognised: Recognised, clip: int, learned: int
) -> ClipPeople:
    """Return the people of a clip with what is known of them as of an earlier clip, and by people.

    Who was met after clip ``learned`` is a character of their own, as they began: what was written
    of them since is not known.
    """
    rows = [one.id for one in _identities(recognised)]
    origins = {one.identity: one for one in origins_of(session, video_id)}
    overlay = overlay_of(corrections_of(session, video_id))
    if overlay is None:
        known = stored.characters_with(session, rows, learned)
        return _clip_people(
            recognised, _with_new_characters(session, known, origins, rows, video_id, clip)
        )
    known = stored.characters_at(session, video_id, learned)
    met_rows = [row for row, one in origins.items() if one.first_clip <= clip]
    every = _with_new_characters(session, known, origins, met_rows, video_id, clip)
    # Names that the source itself gives are there from the beginning.
    names = [
        one
        for one in learned_names(session, video_id, clip)
        if one.name.from_clip <= learned or one.name.source == "caption"
    ]
    stated = statements_until(session, video_id, learned)
    found = apply_overlay(LearnedPeople(every, origins, names, stated), overlay)
    return _clip_people(recognised, [one for one in found if not set(rows).isdisjoint(one.members)])


def _with_new_characters(
    session: Session,
    known: list[CharacterAt],
    origins: Mapping[int, Origin],
    rows: Iterable[int],
    video_id: str,
    clip: int,
) -> list[CharacterAt]:
    """Return the characters with those of identities that are not in any yet, by number."""
    placed = {row for one in known for row in one.members}
    new = [origins[row] for row in rows if row not in placed]
    if not new:
        return known
    learned = learned_names(session, video_id, clip)
    named = {one.identity: one.name for one in learned if one.name.source == "caption"}
    added = [_first_character(one, named.get(one.identity)) for one in new]
    return sorted([*known, *added], key=lambda one: one.character.number)


def _first_character(one: Origin, name: Name | None) -> CharacterAt:
    """Return the character that an identity began as."""
    face = one.kind == IdentityKind.FACE
    character = Character(
        number=one.began,
        name=name.text if name else None,
        faces=(one.number,) if face else (),
        voices=() if face else (one.number,),
    )
    return CharacterAt(
        one.character, character, (one.identity,), (name,) if name else (), one.first_clip
    )


def _identities(recognised: Recognised) -> list[Identity]:
    return [*recognised.groups.values(), *recognised.speakers.values()]


def _clip_people(recognised: Recognised, found: Iterable[CharacterAt]) -> ClipPeople:
    return ClipPeople(
        faces=recognised.of_kind(IdentityKind.FACE),
        voices=recognised.of_kind(IdentityKind.VOICE),
        speakers=recognised.speakers,
        characters=tuple(one.character for one in found),
    )


def _with_joined_numbers(one: CharacterAt, began: Iterable[int]) -> CharacterAt:
    """The character with the numbers of those that became part of it: lines may have these."""
    joined = set(began) - {one.character.number}
    if not joined:
        return one
    character = one.character.model_copy(update={"joined": tuple(sorted(joined))})
    return replace(one, character=character)


def _apply_overlay(
    session: Session,
    video_id: str,
    clip: int,
    found: list[CharacterAt],
    origins: Mapping[int, Origin],
    overlay: Overlay,
) -> list[CharacterAt]:
    learned = LearnedPeople(
        characters=found,
        origins=origins,
        names=learned_names(session, video_id, clip),
        stated=statements_until(session, video_id, clip),
    )
    return apply_overlay(learned, overlay)
