"""The people of a video as they are now, and finding one of them by number, tag or name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from domain.errors import Ambiguous, NotFound
from domain.marked import marked
from domain.media import Video
from domain.people import tag_name
from people.overlay import characters_at
from store.queries import corrections as stored
from store.queries.characters import CharacterAt
from store.queries.clips import memory_view
from store.queries.corrections import Origin
from store.queries.videos import find_video

LAST_CLIP = 2**31 - 1
"""After the last clip of any video."""

MAX_NAME = 200
"""Most characters of a name."""

PERSON_TAG = re.compile(r"<?(face|voice|character)[_ ](\d{1,9})>?")
"""A tag as users write it: kind and number."""


@dataclass(frozen=True)
class VideoPeople:
    """The people of a video as they are after a clip."""

    video: Video
    characters: Sequence[CharacterAt]
    origins: dict[int, Origin]
    last_clip: int = LAST_CLIP

    def tags(self, person: CharacterAt) -> tuple[str, ...]:
        """Return the tags of a character's faces and voices."""
        return tuple(self.origins[row].tag for row in person.members)

    def original_numbers(self, person: CharacterAt) -> set[int]:
        """Return a character's number and those of the characters that were joined to it."""
        return {self.origins[row].began for row in person.members} | {person.character.number}


def lock_people(session: Session, video: str) -> VideoPeople:
    """Lock corrections until this transaction ends, and read the people of a video."""
    stored.lock_corrections(session)
    return people_of_video(session, video)


def people_of_video(session: Session, name: str, as_of_ms: int | None = None) -> VideoPeople:
    """Read the people of a video as they are now, or as they were known then.

    Raises:
        NotFound: no video goes by that name.
        Ambiguous: several do.
    """
    video, last = find_video(session, name), LAST_CLIP
    if as_of_ms is not None:
        last = memory_view(session, [video.id], as_of_ms).scopes[0].last_clip
    origins = {origin.identity: origin for origin in stored.origins_of(session, video.id)}
    return VideoPeople(video, characters_at(session, video.id, last), origins, last)


def find_person(people: VideoPeople, wanted: str) -> CharacterAt:
    """Find the person of that number, tag or name.

    Raises:
        NotFound: nobody goes by it.
        Ambiguous: several do.
    """
    candidates = (_by_number(people, wanted), _by_tag(people, wanted), _by_name(people, wanted))
    matches = next((people_found for people_found in candidates if people_found), [])
    if len(matches) > 1:
        named = ", ".join(describe_person(person) for person in matches)
        raise Ambiguous(f"several people go by {wanted!r}: {named}; give the number")
    if not matches:
        raise NotFound(
            f"nobody goes by {wanted!r} in {people.video.title}: "
            f"`homer people {people.video.id}` lists numbers, tags and names"
        )
    return matches[0]


def _by_number(people: VideoPeople, wanted: str) -> list[CharacterAt]:
    """Return who has this number, else whom the character of this number was joined to."""
    if not wanted.strip().isdecimal() or len(wanted) > MAX_NAME:
        return []
    number = int(wanted)
    exact = [person for person in people.characters if person.character.number == number]
    return exact or [
        person for person in people.characters if number in people.original_numbers(person)
    ]


def _by_tag(people: VideoPeople, wanted: str) -> list[CharacterAt]:
    match = PERSON_TAG.fullmatch(wanted.strip().lower())
    if match is None:
        return []
    if match[1] == "character":
        return _by_number(people, match[2])
    tag = f"<{match[1]}_{int(match[2])}>"
    return [person for person in people.characters if tag in people.tags(person)]


def _by_name(people: VideoPeople, wanted: str) -> list[CharacterAt]:
    name = " ".join(wanted.split()).casefold()
    return [
        person for person in people.characters if name in {n.text.casefold() for n in person.names}
    ]


def describe_person(person: CharacterAt) -> str:
    """Name a character in a sentence: ``person 2``, or ``Ada (person 2)``."""
    name, number = person.character.name, person.character.number
    return marked(f"{name} (person {number})") if name else marked(f"person {number}")


def already_named(person: str, name: str) -> str:
    """Say that a person, described, has a name already, or none where ``name`` is empty."""
    if name:
        return marked(f"{person} is already called {name}")
    return marked(f"{person} already has no name")


def describe_members(tags: Sequence[str]) -> str:
    """Return ``face 3 and voice 1`` for tags; at least one."""
    kind, number = tag_name(tags[0]).split()
    if len(tags) == 1:
        return marked(f"face {number}") if kind == "face" else marked(f"voice {number}")
    others = describe_members(tags[1:])
    face, voice = marked(f"face {number} and {others}"), marked(f"voice {number} and {others}")
    return face if kind == "face" else voice
