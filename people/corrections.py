"""Corrects the people of a video: merge, split, keep apart, undo.

Each correction is recorded and applied over the learned rows (``people.overlay``), which stay.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.orm import Session

from domain.errors import InputError, NotFound
from domain.marked import marked
from domain.media import Video
from domain.people import (
    ACROSS_VIDEOS,
    CorrectedCharacter,
    Correction,
    CorrectionKind,
    escape_tags,
)
from domain.rights import Deed
from domain.texts import make_storable
from people.overlay import USER_SOURCE, are_distinct, overlay_of
from people.video_people import (
    MAX_NAME,
    PERSON_TAG,
    VideoPeople,
    describe_members,
    describe_person,
    find_person,
    lock_people,
)
from store.database import Store
from store.queries import corrections as stored
from store.queries.audit import record_deed
from store.queries.characters import CharacterAt
from store.queries.videos import find_video


def has_name(character: CharacterAt, name: str) -> bool:
    """Tell whether a user gave a character this name, or it has none where ``name`` is empty."""
    user_names = [n.text for n in character.names if n.source == USER_SOURCE]
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
        nameless=() if new_name else people.tags(character),
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
        if source.id == target.id:
            raise InputError(f"{person!r} and {into!r} are one already: {describe_person(source)}")
        outcome = CorrectedCharacter(
            number=target.character.number,
            members=(*people.tags(target), *people.tags(source)),
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
        rows_by_tag = {people.origins[row].tag: row for row in character.members}
        have = ", ".join(tag.strip("<>") for tag in rows_by_tag)
        rows = []
        for tag in tags:
            match = PERSON_TAG.fullmatch(tag.strip().lower())
            named = f"<{match[1]}_{int(match[2])}>" if match else ""
            if named not in rows_by_tag:
                raise InputError(f"{tag!r} is no face or voice of {person!r}, who has {have}")
            rows.append(rows_by_tag[named])
        if not rows:
            raise InputError(f"name some of {have}, not none of them")
        if len(set(rows)) == len(rows_by_tag):
            raise InputError(f"name some of {have}, not all of them")
        removed = tuple(dict.fromkeys(rows))
        remaining = [row for row in character.members if row not in removed]
        number, given = character.character.number, _names_from_users(character)
        began, stays = (
            {people.origins[row].began for row in part} for part in (removed, remaining)
        )
        outcomes = [
            CorrectedCharacter(
                number=one, members=tuple(people.origins[row].tag for row in part), names=names
            )
            for one, part, names in (
                (
                    number if number in began else min(began),
                    removed,
                    (new_name,) if new_name else (),
                ),
                (min(stays) if number in began else number, remaining, given),
            )
        ]
        parts = describe_members([people.origins[row].tag for row in removed])
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
        if first.id == second.id:
            raise InputError(
                f"{person!r} and {other!r} are one: {describe_person(first)}; split them first"
            )
        overlay = overlay_of(stored.corrections_of(session, people.video.id))
        if overlay and are_distinct(overlay, people.tags(first), people.tags(second)):
            raise InputError(
                f"{describe_person(first)} and {describe_person(second)} are two people already"
            )
        summary = marked(f"Kept {describe_person(first)} and {describe_person(second)} apart")
        outcomes = [
            CorrectedCharacter(
                number=a.character.number, members=people.tags(a), others=people.tags(b)
            )
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
        correction = _find_correction(stored.corrections_of(session, found.id), found, number)
        act = correction.act
        for one in stored.corrections_of_act(session, act) if act else [correction]:
            if not one.undone:
                _undo_one(session, one)
        return correction.model_copy(update={"undone": True})


def _undo_one(session: Session, correction: Correction) -> None:
    """Undo a correction in its video.

    Raises:
        InputError: a later one depends on it.
    """
    video_id = correction.video
    corrections = stored.corrections_of(session, video_id)
    later = [c for c in corrections if not c.undone and _depends_on(c, correction)]
    if later:
        latest = later[-1]
        raise InputError(
            f"correction {latest.number} ({latest.told}) builds on correction "
            f"{correction.number}: undo that first: homer people undo {video_id} {latest.number}"
        )
    stored.change_correction(session, video_id, correction.model_copy(update={"undone": True}))
    record_deed(session, Deed.CHANGED_PEOPLE, f"{video_id} correction {correction.number}")


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
    numbers = set().union(*(people.original_numbers(character) for character in about))
    correction = stored.add_correction(
        session, people.video.id, kind, summary, sorted(numbers), outcomes, act
    )
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
    """Return the names that users gave, in order."""
    names = (name for person in people for name in person.names)
    return tuple(name.text for name in names if name.source == USER_SOURCE)


def _find_correction(
    corrections: Sequence[Correction], video: Video, number: int | None
) -> Correction:
    active = [correction for correction in corrections if not correction.undone]
    if number is None:
        if not active:
            raise NotFound(f"no correction of {video.title} is in force: nothing to undo")
        return active[-1]
    correction = next((each for each in corrections if each.number == number), None)
    if correction is None:
        raise NotFound(f"there is no correction {number}: `homer people history {video.id}`")
    if correction.undone:
        raise InputError(f"correction {number} ({correction.told}) is undone already")
    return correction


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
