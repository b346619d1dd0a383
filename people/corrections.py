"""Corrects the people of a video: rename, merge, split, keep apart, undo.

Each is recorded and laid over what was learned (see ``people.overlay``); no other row changes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from domain.audit import Deed
from domain.base import Frozen
from domain.errors import Ambiguous, InputError, NotFound
from domain.media import Video
from domain.people import CorrectedCharacter, Correction, CorrectionKind, escape_tags
from domain.texts import make_storable
from domain.time import TimeSpan
from people.characters import MODEL_SUPPORT
from people.corrected import characters_at
from people.overlay import USER_SOURCE, Overlay, are_distinct, overlay_of
from store.database import Store
from store.queries import corrections as stored
from store.queries.audit import record_deed
from store.queries.characters import CharacterAt, Name
from store.queries.corrections import Appearances, Origin
from store.queries.videos import find_video

LAST_CLIP = 2**31 - 1
"""After the last clip of any video."""

MAX_NAME = 200

_TAG = re.compile(r"<?(face|voice|character)[_ ](\d{1,9})>?")


class KnownName(Frozen):
    """A name and where it comes from: said, read, caption, model or person."""

    name: str
    source: str


class MaybeSame(Frozen):
    """Somebody who is said to be the same person, which nothing bears out yet."""

    number: int
    tags: tuple[str, str]
    reason: str


class KnownPerson(Frozen):
    """A person as one may speak of them: by number, tag or name.

    ``seen`` and ``heard`` count sightings; ``span`` is from the first to the last of them.
    ``maybe`` are statements that were kept, and are not enough to join anybody.
    """

    number: int
    label: str
    names: tuple[KnownName, ...]
    tags: tuple[str, ...]
    seen: int
    heard: int
    span: TimeSpan | None
    maybe: tuple[MaybeSame, ...] = ()


@dataclass(frozen=True)
class VideoPeople:
    """The people of a video as they are now."""

    video: Video
    characters: Sequence[CharacterAt]
    origins: dict[int, Origin]

    def tags(self, person: CharacterAt) -> tuple[str, ...]:
        """Return the tags of a person's faces and voices."""
        return tuple(self.origins[row].tag for row in person.members)

    def original_numbers(self, person: CharacterAt) -> set[int]:
        """Return the numbers that went into a person."""
        return {self.origins[row].began for row in person.members} | {person.character.number}


def list_people(store: Store, video: str) -> list[KnownPerson]:
    """Return the people of a video as they are now, by number.

    Raises:
        NotFound: no video goes by that name.
        Ambiguous: several do.
    """
    with store.begin(snapshot=True) as session:
        people = people_of_video(session, video)
        return known_people(session, people, people.characters)


def known_people(
    session: Session, video_people: VideoPeople, people: Sequence[CharacterAt]
) -> list[KnownPerson]:
    """Describe some of the video's people, in their order."""
    rows = [row for one in people for row in one.members]
    times = stored.appearances_of(session, video_people.video.id, rows)
    maybe = _possible_matches(session, video_people)
    return [
        _known_person(video_people, one, times, maybe.get(one.character.number, []))
        for one in people
    ]


def _possible_matches(session: Session, people: VideoPeople) -> dict[int, list[MaybeSame]]:
    """Find statements that join a face and a voice of two people, by either number."""
    owners = {row: one for one in people.characters for row in one.members}
    overlay = overlay_of(stored.corrections_of(session, people.video.id)) or Overlay()
    found: dict[int, list[MaybeSame]] = {}
    for claim in stored.claims_of(session, people.video.id):
        face, voice = owners.get(claim.face), owners.get(claim.voice)
        if claim.support < MODEL_SUPPORT or face is None or voice is None or face.id == voice.id:
            continue
        if are_distinct(overlay, people.tags(face), people.tags(voice)):
            continue
        tags = (people.origins[claim.face].tag, people.origins[claim.voice].tag)
        for one, other in ((face, voice), (voice, face)):
            same = MaybeSame(number=other.character.number, tags=tags, reason=claim.reason)
            found.setdefault(one.character.number, []).append(same)
    return found


def rename(store: Store, video: str, person: str, name: str) -> Correction:
    """Give a person a name that comes before all that were learned; the empty one takes all away.

    Args:
        store: The store.
        video: Id, unambiguous beginning of one, or title.
        person: Number, tag or name.
        name: The name. Empty: the person goes by a tag, whatever was or will be learned of them.

    Returns:
        The correction.

    Raises:
        NotFound: no such video or person.
        Ambiguous: several go by that name.
        InputError: the name is none, or the person goes by it already.
    """
    new_name = _clean_name(name)
    with store.begin() as session:
        people = lock_people(session, video)
        character = find_person(people, person)
        given = [n.text for n in character.names if n.source == USER_SOURCE]
        if new_name in given[:1] or not (new_name or character.names):
            raise InputError(f"{person!r} goes by {character.character.label!r} already")
        outcome = CorrectedCharacter(
            number=character.character.number,
            names=(new_name,) if new_name else (),
            nameless=() if new_name else people.tags(character),
        )
        summary = (
            f"{_describe(character)} is {new_name}"
            if new_name
            else f"{_describe(character)} has no name"
        )
        return _record(session, people, CorrectionKind.RENAME, summary, [character], [outcome])


def merge(store: Store, video: str, person: str, into: str) -> Correction:
    """Merge two people: ``into`` keeps its number and gets faces, voices and names of the other.

    Raises:
        NotFound: no such video or person.
        Ambiguous: several go by that name.
        InputError: they are one already.
    """
    with store.begin() as session:
        people = lock_people(session, video)
        one, other = find_person(people, person), find_person(people, into)
        if one.id == other.id:
            raise InputError(f"{person!r} and {into!r} are one already: {_describe(one)}")
        outcome = CorrectedCharacter(
            number=other.character.number,
            members=(*people.tags(other), *people.tags(one)),
            names=tuple(dict.fromkeys(n.text for n in _names_from_users(other, one))),
        )
        summary = f"{_describe(one)} is {_describe(other)}"
        return _record(session, people, CorrectionKind.MERGE, summary, [one, other], [outcome])


def split(store: Store, video: str, person: str, tags: Sequence[str], name: str = "") -> Correction:
    """Move some faces and voices of a person to a new one, who may be given a name.

    Names that people gave stay with the others; learned ones stay with whom they were learned of.
    Numbers go back to where they came from: the part with the face that a person began with keeps
    the number, the other one gets that of a face or voice of its own.

    Args:
        store: The store.
        video: Id, unambiguous beginning of one, or title.
        person: Number, tag or name.
        tags: ``face_3`` and the like, all of that person, and not all that they have.
        name: What the new one is called.

    Returns:
        The correction.

    Raises:
        NotFound: no such video or person.
        Ambiguous: several go by that name.
        InputError: a tag is not of this person, or nobody would be left.
    """
    new_name = _clean_name(name)
    with store.begin() as session:
        people = lock_people(session, video)
        one = find_person(people, person)
        removed = _members_of_tags(people, one, person, tags)
        rest = [row for row in one.members if row not in removed]
        numbers = _numbers_of_parts(people, one, removed, rest)
        outcomes = [
            _outcome_of(people, numbers[0], removed, (new_name,) if new_name else ()),
            _outcome_of(people, numbers[1], rest, tuple(n.text for n in _names_from_users(one))),
        ]
        tags_text = " and ".join(people.origins[row].tag for row in removed)
        summary = f"{tags_text} of {_describe(one)} is {new_name or 'somebody else'}"
        return _record(session, people, CorrectionKind.SPLIT, summary, [one], outcomes)


def keep_apart(store: Store, video: str, person: str, other: str) -> Correction:
    """Record that two characters are two people, so that they are not suggested as one.

    Of the faces and voices that they have now, none is joined to the other by the machine. A later
    `merge` has the last word.

    Raises:
        NotFound: no such video or person.
        Ambiguous: several go by that name.
        InputError: they are one, or were said to be two already.
    """
    with store.begin() as session:
        people = lock_people(session, video)
        one, two = find_person(people, person), find_person(people, other)
        if one.id == two.id:
            raise InputError(
                f"{person!r} and {other!r} are one: {_describe(one)}; split them first"
            )
        if are_kept_apart(session, people, one, two):
            raise InputError(f"{_describe(one)} and {_describe(two)} are two people already")
        summary = f"{_describe(one)} and {_describe(two)} are two people"
        outcomes = [
            CorrectedCharacter(
                number=a.character.number, members=people.tags(a), others=people.tags(b)
            )
            for a, b in ((one, two), (two, one))
        ]
        return _record(session, people, CorrectionKind.APART, summary, [one, two], outcomes)


def are_kept_apart(
    session: Session, people: VideoPeople, one: CharacterAt, other: CharacterAt
) -> bool:
    """Tell whether users said that these are two people."""
    overlay = overlay_of(stored.corrections_of(session, people.video.id))
    return overlay is not None and are_distinct(overlay, people.tags(one), people.tags(other))


def undo(store: Store, video: str, number: int | None = None) -> Correction:
    """Undo a correction: all is as if it had never been made.

    Args:
        store: The store.
        video: Id, unambiguous beginning of one, or title.
        number: The correction; None: the last one that is in force.

    Returns:
        The correction that was taken back.

    Raises:
        NotFound: no such video or correction.
        InputError: it is undone already, or a later one builds on it.
    """
    with store.begin() as session:
        stored.lock_corrections(session)
        found = find_video(session, video)
        corrections = stored.corrections_of(session, found.id)
        correction = _find_correction(corrections, found, number)
        later = [
            c
            for c in corrections
            if c.number > correction.number and not c.undone and _depends_on(c, correction)
        ]
        if later:
            last = later[-1]
            raise InputError(
                f"correction {last.number} ({last.told}) builds on correction {correction.number}: "
                f"take that back first: homer people undo {found.id} {last.number}"
            )
        taken_back = correction.model_copy(update={"undone": True})
        stored.change_correction(session, found.id, taken_back)
        record_deed(session, Deed.CHANGED_PEOPLE, f"{found.id} correction {correction.number}")
        return taken_back


def history(store: Store, video: str) -> list[Correction]:
    """Return every correction of a video, undone ones too, the oldest first.

    Raises:
        NotFound: no video goes by that name.
        Ambiguous: several do.
    """
    with store.begin(snapshot=True) as session:
        return stored.corrections_of(session, find_video(session, video).id)


def lock_people(session: Session, video: str) -> VideoPeople:
    """Lock corrections until this transaction ends, and read the people of a video."""
    stored.lock_corrections(session)
    return people_of_video(session, video)


def people_of_video(session: Session, name: str) -> VideoPeople:
    """Read the people of a video as they are now.

    Raises:
        NotFound: no video goes by that name.
        Ambiguous: several do.
    """
    video = find_video(session, name)
    origins = {one.identity: one for one in stored.origins_of(session, video.id)}
    return VideoPeople(video, characters_at(session, video.id, LAST_CLIP), origins)


def _record(
    session: Session,
    people: VideoPeople,
    kind: CorrectionKind,
    summary: str,
    about: Sequence[CharacterAt],
    outcomes: Sequence[CorrectedCharacter],
) -> Correction:
    numbers = set().union(*(people.original_numbers(one) for one in about))
    correction = stored.add_correction(
        session, people.video.id, kind, summary, sorted(numbers), outcomes
    )
    record_deed(session, Deed.CHANGED_PEOPLE, f"{people.video.id} correction {correction.number}")
    return correction


def _known_person(
    people: VideoPeople, one: CharacterAt, times: dict[int, Appearances], maybe: Sequence[MaybeSame]
) -> KnownPerson:
    of = {row: times[row] for row in one.members if row in times}
    faces = [row for row in of if people.origins[row].kind == "face"]
    seen = sum(of[row].times for row in faces)
    spans = of.values()
    return KnownPerson(
        number=one.character.number,
        label=one.character.label,
        names=tuple(KnownName(name=n.text, source=n.source) for n in one.names),
        tags=people.tags(one),
        seen=seen,
        heard=sum(a.times for a in spans) - seen,
        span=TimeSpan.of(min(a.start_ms for a in spans), max(a.end_ms for a in spans))
        if spans
        else None,
        maybe=tuple(maybe),
    )


def _clean_name(text: str) -> str:
    """Return a name fit to be kept: one line without what passes for a tag."""
    plain = "".join(c if c.isprintable() else " " for c in escape_tags(make_storable(text)))
    name = " ".join(plain.split())
    if len(name) > MAX_NAME:
        raise InputError(f"a name of {len(name)} characters: at most {MAX_NAME} are kept")
    return name


def _describe(one: CharacterAt) -> str:
    """Name a person in a sentence: by number, and by name where there is one."""
    number = one.character.number
    return f"{number} ({one.character.name})" if one.character.name else str(number)


def _names_from_users(*people: CharacterAt) -> list[Name]:
    """Return the names that people gave, in order."""
    return [name for one in people for name in one.names if name.source == USER_SOURCE]


def find_person(people: VideoPeople, wanted: str) -> CharacterAt:
    """Find the person of that number, tag or name.

    Raises:
        NotFound: nobody goes by it.
        Ambiguous: several do.
    """
    matches = (_by_number(people, wanted), _by_tag(people, wanted), _by_name(people, wanted))
    found = next((way for way in matches if way), [])
    if len(found) > 1:
        named = ", ".join(_describe(one) for one in found)
        raise Ambiguous(f"several people go by {wanted!r}: {named}; give the number")
    if not found:
        raise NotFound(
            f"nobody goes by {wanted!r} in {people.video.title}: "
            f"`homer people {people.video.id}` lists numbers, tags and names"
        )
    return found[0]


def _by_number(people: VideoPeople, wanted: str) -> list[CharacterAt]:
    """Return the person that a number stands for, through merges."""
    if not wanted.strip().isdecimal() or len(wanted) > MAX_NAME:
        return []
    number = int(wanted)
    exact = [one for one in people.characters if one.character.number == number]
    return exact or [one for one in people.characters if number in people.original_numbers(one)]


def _by_tag(people: VideoPeople, wanted: str) -> list[CharacterAt]:
    found = _TAG.fullmatch(wanted.strip().lower())
    if found is None:
        return []
    if found[1] == "character":
        return _by_number(people, found[2])
    tag = f"<{found[1]}_{int(found[2])}>"
    return [one for one in people.characters if tag in people.tags(one)]


def _by_name(people: VideoPeople, wanted: str) -> list[CharacterAt]:
    name = " ".join(wanted.split()).casefold()
    return [one for one in people.characters if name in {n.text.casefold() for n in one.names}]


def _members_of_tags(
    people: VideoPeople, one: CharacterAt, person: str, tags: Sequence[str]
) -> tuple[int, ...]:
    """Return the members that tags name."""
    known = {people.origins[row].tag: row for row in one.members}
    have = ", ".join(tag.strip("<>") for tag in known)
    rows = []
    for tag in tags:
        found = _TAG.fullmatch(tag.strip().lower())
        named = f"<{found[1]}_{int(found[2])}>" if found else ""
        if named not in known:
            raise InputError(f"{tag!r} is no face or voice of {person!r}, who has {have}")
        rows.append(known[named])
    if not 0 < len(set(rows)) < len(known):
        raise InputError(f"name some of {have}, not {'all' if rows else 'none'} of them")
    return tuple(dict.fromkeys(rows))


def _numbers_of_parts(
    people: VideoPeople, one: CharacterAt, removed: Sequence[int], rest: Sequence[int]
) -> tuple[int, int]:
    """Return the numbers of both parts."""
    began = [{people.origins[row].began for row in part} for part in (removed, rest)]
    number = one.character.number
    return (number, min(began[1])) if number in began[0] else (min(began[0]), number)


def _outcome_of(
    people: VideoPeople, number: int, rows: Sequence[int], names: tuple[str, ...]
) -> CorrectedCharacter:
    members = tuple(people.origins[row].tag for row in rows)
    return CorrectedCharacter(number=number, members=members, names=names)


def _find_correction(
    corrections: Sequence[Correction], video: Video, number: int | None
) -> Correction:
    active = [one for one in corrections if not one.undone]
    if number is None:
        if not active:
            raise NotFound(f"no correction of {video.title} is in force: nothing to undo")
        return active[-1]
    found = next((one for one in corrections if one.number == number), None)
    if found is None:
        raise NotFound(f"there is no correction {number}: `homer people history {video.id}`")
    if found.undone:
        raise InputError(f"correction {number} ({found.told}) is undone already")
    return found


def _depends_on(later: Correction, one: Correction) -> bool:
    """Check whether ``later`` builds on ``character``.

    What was said to be apart is told by tags and stands on its own, but for whom a split made two.
    """
    if CorrectionKind.APART in (later.kind, one.kind) and one.kind is not CorrectionKind.SPLIT:
        return False
    return not set(later.numbers).isdisjoint(one.numbers)
