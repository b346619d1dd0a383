"""The people of a video: finding one, and correcting them: merge, split, keep apart, undo."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from domain.errors import Ambiguous, InputError, NotFound
from domain.media import Video
from domain.people import (
    ACROSS_VIDEOS,
    CorrectedCharacter,
    Correction,
    CorrectionKind,
    escape_tags,
    tag_name,
)
from domain.rights import Deed
from domain.words import make_storable, marked
from people.characters import in_force, place_people
from store.database import Store
from store.queries import characters as stored
from store.queries.characters import USER_SOURCE, CharacterAt, characters_at
from store.queries.clips import memory_view
from store.queries.rights import record_deed
from store.queries.videos import find_video

# The people of a video as they are now, and finding one of them by number, tag or name.

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
    last_clip: int = LAST_CLIP


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
    return VideoPeople(video, characters_at(session, video.id, last), last)


def find_person(people: VideoPeople, wanted: str) -> CharacterAt:
    """Find the person of that number, tag or name.

    Raises:
        NotFound: nobody goes by it.
        Ambiguous: several do.
    """
    name = " ".join(wanted.split()).casefold()
    match = PERSON_TAG.fullmatch(wanted.strip().lower())
    if match is None:
        by_tag = []
    elif match[1] == "character":
        by_tag = _by_number(people, match[2])
    else:
        tag = f"<{match[1]}_{int(match[2])}>"
        by_tag = [person for person in people.characters if tag in person.tags]
    candidates = (
        _by_number(people, wanted),
        by_tag,
        [
            person
            for person in people.characters
            if name in {n.name.casefold() for n in person.names}
        ],
    )
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
    return exact or [person for person in people.characters if number in person.numbers]


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


# Corrects the people of a video: merge, split, keep apart, undo.
#
# Each is recorded, and applied when it is made (``people.characters``); what was learned stays.


def has_name(character: CharacterAt, name: str) -> bool:
    """Tell whether a user gave a character this name, or it has none where ``name`` is empty."""
    user_names = [n.name for n in character.names if n.source == USER_SOURCE]
    return name in user_names[:1] if name else not character.names


def rename_character(
    session: Session,
    people: VideoPeople,
    character: CharacterAt,
    new_name: str,
    act: str | None = None,
) -> Correction:
    """Record a character's preferred name, or none; ``act`` joins renames in several videos."""
    outcome = CorrectedCharacter(
        number=character.character.number,
        names=(new_name,) if new_name else (),
        nameless=() if new_name else character.tags,
    )
    if not new_name:
        summary = marked(f"Removed the name of {describe_person(character)}")
    elif character.character.name:
        summary = marked(f"Renamed {describe_person(character)} to {new_name}")
    else:
        summary = marked(f"Named person {character.character.number} {new_name}")
    kind = CorrectionKind.RENAME
    return record_correction(session, people, kind, summary, [character], [outcome], act)


def merge(store: Store, video: str, person: str, into: str) -> Correction:
    """Merge two characters: ``into`` keeps its number and gets the other's members and names.

    Raises:
        NotFound: no such video or person.
        Ambiguous: several go by that name.
        InputError: they are one already.
    """
    with store.begin() as session:
        people = lock_people(session, video)
        source, target = find_person(people, person), find_person(people, into)
        if source.members == target.members:
            raise InputError(f"{person!r} and {into!r} are one already: {describe_person(source)}")
        outcome = CorrectedCharacter(
            number=target.character.number,
            members=(*target.tags, *source.tags),
            names=tuple(dict.fromkeys(_names_from_users(target, source))),
        )
        summary = marked(f"Merged {describe_person(source)} into {describe_person(target)}")
        return record_correction(
            session, people, CorrectionKind.MERGE, summary, [source, target], [outcome]
        )


def split(store: Store, video: str, person: str, tags: Sequence[str], name: str = "") -> Correction:
    """Split some faces and voices off a character, as a new one with an optional name.

    Names that users gave stay with the remaining members; learned ones stay with the identity they
    were learned of. The part with the identity that the character began with keeps the number, the
    other one gets the original number of one of its members.

    Raises:
        NotFound: no such video or person.
        Ambiguous: several go by that name.
        InputError: a tag is not of this person, or nobody would be left.
    """
    new_name = clean_name(name)
    with store.begin() as session:
        people = lock_people(session, video)
        character = find_person(people, person)
        # The members that tags name.
        began_by_tag = dict(zip(character.tags, character.began, strict=True))
        have = ", ".join(tag.strip("<>") for tag in character.tags)
        found = []
        for tag in tags:
            match = PERSON_TAG.fullmatch(tag.strip().lower())
            named = f"<{match[1]}_{int(match[2])}>" if match else ""
            if named not in began_by_tag:
                raise InputError(f"{tag!r} is no face or voice of {person!r}, who has {have}")
            found.append(named)
        if not found:
            raise InputError(f"name some of {have}, not none of them")
        if len(set(found)) == len(began_by_tag):
            raise InputError(f"name some of {have}, not all of them")
        removed = tuple(dict.fromkeys(found))
        remaining = tuple(tag for tag in character.tags if tag not in removed)
        number, given = character.character.number, _names_from_users(character)
        began, stays = ({began_by_tag[tag] for tag in part} for part in (removed, remaining))
        outcomes = [
            CorrectedCharacter(number=one, members=part, names=names)
            for one, part, names in (
                (
                    number if number in began else min(began),
                    removed,
                    (new_name,) if new_name else (),
                ),
                (min(stays) if number in began else number, remaining, given),
            )
        ]
        parts = describe_members(removed)
        summary = (
            marked(f"Split {parts} off {describe_person(character)}, as {new_name}")
            if new_name
            else marked(f"Split {parts} off {describe_person(character)}, as another person")
        )
        return record_correction(
            session, people, CorrectionKind.SPLIT, summary, [character], outcomes
        )


def keep_apart(store: Store, video: str, person: str, other: str) -> Correction:
    """Record that two characters are two people, so that they are not suggested as one.

    Their present faces and voices are not joined by later statements; a later `merge` still can.

    Raises:
        NotFound: no such video or person.
        Ambiguous: several go by that name.
        InputError: they are one, or were said to be two already.
    """
    with store.begin() as session:
        people = lock_people(session, video)
        first, second = find_person(people, person), find_person(people, other)
        if first.members == second.members:
            raise InputError(
                f"{person!r} and {other!r} are one: {describe_person(first)}; split them first"
            )
        truth = in_force(stored.corrections_of(session, people.video.id))
        if truth.are_distinct(first.tags, second.tags):
            raise InputError(
                f"{describe_person(first)} and {describe_person(second)} are two people already"
            )
        summary = marked(f"Kept {describe_person(first)} and {describe_person(second)} apart")
        outcomes = [
            CorrectedCharacter(number=a.character.number, members=a.tags, others=b.tags)
            for a, b in ((first, second), (second, first))
        ]
        return record_correction(
            session, people, CorrectionKind.APART, summary, [first, second], outcomes
        )


def undo(store: Store, video: str, number: int | None = None) -> Correction:
    """Undo a correction; the characters are as if it had never been made.

    One that was made in several videos is undone in all of them. Without a number it is the last
    one that is in force.

    Raises:
        NotFound: no such video or correction.
        InputError: it is undone already, or a later one depends on it.
    """
    with store.begin() as session:
        stored.lock_corrections(session)
        found = find_video(session, video)
        corrections = stored.corrections_of(session, found.id)
        if number is None:
            active = [one for one in corrections if not one.undone]
            if not active:
                raise NotFound(f"no correction of {found.title} is in force: nothing to undo")
            correction = active[-1]
        else:
            asked = next((each for each in corrections if each.number == number), None)
            if asked is None:
                raise NotFound(
                    f"there is no correction {number}: `homer people history {found.id}`"
                )
            if asked.undone:
                raise InputError(f"correction {number} ({asked.told}) is undone already")
            correction = asked
        act = correction.act
        for one in stored.corrections_of_act(session, act) if act else [correction]:
            if one.undone:
                continue
            mine = stored.corrections_of(session, one.video)
            later = [c for c in mine if not c.undone and _depends_on(c, one)]
            if later:
                latest = later[-1]
                raise InputError(
                    f"correction {latest.number} ({latest.told}) builds on correction "
                    f"{one.number}: undo that first: homer people undo {one.video} {latest.number}"
                )
            undone = one.model_copy(update={"undone": True})
            stored.change_correction(session, one.video, undone)
            place_people(session, one.video)
            record_deed(session, Deed.CHANGED_PEOPLE, f"{one.video} correction {one.number}")
        return correction.model_copy(update={"undone": True})


def history(store: Store, video: str) -> list[Correction]:
    """Return every correction of a video, undone ones too, the oldest first.

    Raises:
        NotFound: no video goes by that name.
        Ambiguous: several do.
    """
    with store.begin(snapshot=True) as session:
        return stored.corrections_of(session, find_video(session, video).id)


def record_correction(
    session: Session,
    people: VideoPeople,
    kind: CorrectionKind,
    summary: str,
    about: Sequence[CharacterAt],
    outcomes: Sequence[CorrectedCharacter],
    act: str | None = None,
) -> Correction:
    """Record a correction about some characters; ``act`` joins those of several videos."""
    numbers = set().union(*(character.numbers for character in about))
    correction = stored.add_correction(
        session, people.video.id, kind, summary, sorted(numbers), outcomes, act
    )
    if kind not in ACROSS_VIDEOS:
        place_people(session, people.video.id)
    record_deed(session, Deed.CHANGED_PEOPLE, f"{people.video.id} correction {correction.number}")
    return correction


def clean_name(text: str) -> str:
    """Return a name as one line of printable characters, with tags escaped.

    Raises:
        InputError: it has more than ``MAX_NAME`` characters.
    """
    printable = "".join(c if c.isprintable() else " " for c in escape_tags(make_storable(text)))
    name = " ".join(printable.split())
    if len(name) > MAX_NAME:
        raise InputError(f"a name of {len(name)} characters: at most {MAX_NAME} are kept")
    return name


def _names_from_users(*people: CharacterAt) -> tuple[str, ...]:
    names = (name for person in people for name in person.names)
    return tuple(name.name for name in names if name.source == USER_SOURCE)


def _depends_on(later: Correction, earlier: Correction) -> bool:
    """Tell whether ``later`` depends on ``earlier``.

    APART corrections refer to tags and depend on nothing but a split. Those about characters of
    different videos refer to numbers, which are never reused: only a join of persons depends on the
    joins that made them.
    """
    if later.number <= earlier.number:
        return False
    if ACROSS_VIDEOS & {later.kind, earlier.kind}:
        # Tell whether a join gave a character that was joined before another person's id.
        if {later.kind, earlier.kind} != {CorrectionKind.JOIN}:
            return False
        ids, earlier_ids = (
            {(one.number, person) for one in correction.outcomes for person in one.persons}
            for correction in (later, earlier)
        )
        same_number = {number for number, _ in ids} & {number for number, _ in earlier_ids}
        return bool(same_number) and ids.isdisjoint(earlier_ids)
    if (
        CorrectionKind.APART in (later.kind, earlier.kind)
        and earlier.kind is not CorrectionKind.SPLIT
    ):
        return False
    return not set(later.numbers).isdisjoint(earlier.numbers)
