"""Who is who in a video as of a clip, with what people corrected.

An as-of view never shows what was watched later. Corrections are an exception: they state facts
that hold throughout the video, so a question as of minute five sees them even if they were made
at the end.
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
    characters = stored.characters_in_view(session, scopes)
    corrected = corrected_videos(session, [scope.video for scope in scopes])
    return {
        scope.video: _with_corrections(session, scope, characters[scope.video])
        if scope.video in corrected
        else [_with_joined_numbers(row, row.began) for row in characters[scope.video]]
        for scope in scopes
    }


def _with_corrections(
    session: Session, scope: Scope, characters: list[CharacterAt]
) -> list[CharacterAt]:
    overlay = overlay_of(corrections_of(session, scope.video))
    origins = {origin.identity: origin for origin in origins_of(session, scope.video)}
    if overlay:
        characters = _apply_overlay(
            session, scope.video, scope.last_clip, characters, origins, overlay
        )
    return [
        _with_joined_numbers(state, [origins[row].began for row in state.members])
        for state in characters
    ]


def people_as_of(session: Session, scope: Scope) -> list[Character]:
    """Return the characters of a video as they were known as of ``scope``, by number."""
    return people_in_view(session, [scope])[scope.video]


def people_in_view(session: Session, scopes: Sequence[Scope]) -> dict[str, list[Character]]:
    """Return the characters of each video as they were known as of its scope, by number."""
    characters = characters_in_view(session, scopes)
    return {video: [row.character for row in rows] for video, rows in characters.items()}


def people_of_clip(
    session: Session, video_id: str, recognised: Recognised, clip: int
) -> ClipPeople:
    """Return the people of a clip with the characters known so far, corrections applied."""
    rows = {identity.id for identity in _identities(recognised)}
    overlay = overlay_of(corrections_of(session, video_id))
    if overlay is None:
        return learned_people(session, recognised, clip)
    characters = stored.characters_at(session, video_id, clip)
    origins = {origin.identity: origin for origin in origins_of(session, video_id)}
    corrected = _apply_overlay(session, video_id, clip, characters, origins, overlay)
    return _clip_people(
        recognised, [character for character in corrected if rows.intersection(character.members)]
    )


def learned_people(session: Session, recognised: Recognised, clip: int) -> ClipPeople:
    """Return the people of a clip as they were learned, without corrections."""
    rows = [identity.id for identity in _identities(recognised)]
    return _clip_people(recognised, stored.characters_with(session, rows, clip))


def people_for_writer(
    session: Session, video_id: str, recognised: Recognised, clip: int, learned: int
) -> ClipPeople:
    """Return the people of a clip as known after an earlier clip, corrections applied.

    Args:
        recognised: The clip's identities.
        clip: The clip's index.
        learned: The last clip whose names and statements count. An identity first seen after it is
            a character of its own, as it began.
    """
    rows = [identity.id for identity in _identities(recognised)]
    origins = {origin.identity: origin for origin in origins_of(session, video_id)}
    overlay = overlay_of(corrections_of(session, video_id))
    if overlay is None:
        characters = stored.characters_with(session, rows, learned)
        return _clip_people(
            recognised, _with_new_characters(session, characters, origins, rows, video_id, clip)
        )
    characters = stored.characters_at(session, video_id, learned)
    met_rows = [row for row, origin in origins.items() if origin.first_clip <= clip]
    all_characters = _with_new_characters(session, characters, origins, met_rows, video_id, clip)
    # A name that the source gives is known as soon as its speaker is.
    names = [
        learned_name
        for learned_name in learned_names(session, video_id, clip)
        if learned_name.name.from_clip <= learned or learned_name.name.source == "caption"
    ]
    stated = statements_until(session, video_id, learned)
    corrected = apply_overlay(LearnedPeople(all_characters, origins, names, stated), overlay)
    return _clip_people(
        recognised,
        [character for character in corrected if not set(rows).isdisjoint(character.members)],
    )


def _with_new_characters(
    session: Session,
    characters: list[CharacterAt],
    origins: Mapping[int, Origin],
    rows: Iterable[int],
    video_id: str,
    clip: int,
) -> list[CharacterAt]:
    """Add a character for each of ``rows`` that is in none yet; return all by number."""
    placed = {row for character in characters for row in character.members}
    new = [origins[row] for row in rows if row not in placed]
    if not new:
        return characters
    learned = learned_names(session, video_id, clip)
    named = {
        learned_name.identity: learned_name.name
        for learned_name in learned
        if learned_name.name.source == "caption"
    }
    added = [_first_character(origin, named.get(origin.identity)) for origin in new]
    return sorted([*characters, *added], key=lambda row: row.character.number)


def _first_character(origin: Origin, name: Name | None) -> CharacterAt:
    face = origin.kind == IdentityKind.FACE
    character = Character(
        number=origin.began,
        name=name.text if name else None,
        faces=(origin.number,) if face else (),
        voices=() if face else (origin.number,),
    )
    return CharacterAt(
        origin.character, character, (origin.identity,), (name,) if name else (), origin.first_clip
    )


def _identities(recognised: Recognised) -> list[Identity]:
    return [*recognised.groups.values(), *recognised.speakers.values()]


def _clip_people(recognised: Recognised, rows: Iterable[CharacterAt]) -> ClipPeople:
    return ClipPeople(
        faces=recognised.of_kind(IdentityKind.FACE),
        voices=recognised.of_kind(IdentityKind.VOICE),
        speakers=recognised.speakers,
        characters=tuple(row.character for row in rows),
    )


def _with_joined_numbers(state: CharacterAt, began: Iterable[int]) -> CharacterAt:
    """Add the numbers of characters that were joined to this one: stored lines may use them.

    Args:
        began: The numbers that its members began with.
    """
    joined_numbers = set(began) - {state.character.number}
    if not joined_numbers:
        return state
    character = state.character.model_copy(update={"joined": tuple(sorted(joined_numbers))})
    return replace(state, character=character)


def _apply_overlay(
    session: Session,
    video_id: str,
    clip: int,
    characters: list[CharacterAt],
    origins: Mapping[int, Origin],
    overlay: Overlay,
) -> list[CharacterAt]:
    learned = LearnedPeople(
        characters=characters,
        origins=origins,
        names=learned_names(session, video_id, clip),
        stated=statements_until(session, video_id, clip),
    )
    return apply_overlay(learned, overlay)
