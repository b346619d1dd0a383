"""What a person says about the people of a video: names, who is one, who is not; and back.

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
from people.characters import STATED
from people.corrected import characters_at
from people.overlay import PERSON, Truth, are_apart, truth_of
from store.database import Store
from store.queries import corrections as stored
from store.queries.audit import record_deed
from store.queries.characters import CharacterAt, Name
from store.queries.corrections import Appearances, Origin
from store.queries.videos import find_video

NOW = 2**31 - 1
"""After the last clip of any video."""

LONGEST_NAME = 200

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
    people: Sequence[CharacterAt]
    origins: dict[int, Origin]

    def tags(self, person: CharacterAt) -> tuple[str, ...]:
        """The tags of a person's faces and voices."""
        return tuple(self.origins[row].tag for row in person.members)

    def began(self, person: CharacterAt) -> set[int]:
        """The numbers that went into a person."""
        return {self.origins[row].began for row in person.members} | {person.character.number}


def list_people(store: Store, video: str) -> list[KnownPerson]:
    """The people of a video as they are now, by number.

    Raises:
        NotFound: no video goes by that name.
        Ambiguous: several do.
    """
    with store.begin(snapshot=True) as session:
        cast = cast_of(session, video)
        return known_people(session, cast, cast.people)


def known_people(
    session: Session, cast: VideoPeople, people: Sequence[CharacterAt]
) -> list[KnownPerson]:
    """Some people of ``cast`` as one may speak of them, in their order."""
    rows = [row for one in people for row in one.members]
    times = stored.appearances_of(session, cast.video.id, rows)
    maybe = _maybe(session, cast)
    return [_known(cast, one, times, maybe.get(one.character.number, [])) for one in people]


def _maybe(session: Session, cast: VideoPeople) -> dict[int, list[MaybeSame]]:
    """Statements that a face is a voice of which both are still two people, by either number."""
    owners = {row: one for one in cast.people for row in one.members}
    truth = truth_of(stored.corrections_of(session, cast.video.id)) or Truth()
    found: dict[int, list[MaybeSame]] = {}
    for claim in stored.claims_of(session, cast.video.id):
        face, voice = owners.get(claim.face), owners.get(claim.voice)
        if claim.support < STATED or face is None or voice is None or face.id == voice.id:
            continue
        if are_apart(truth, cast.tags(face), cast.tags(voice)):
            continue
        tags = (cast.origins[claim.face].tag, cast.origins[claim.voice].tag)
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
    wanted = _name(name)
    with store.begin() as session:
        cast = cast_to_correct(session, video)
        one = find_person(cast, person)
        given = [n.text for n in one.names if n.source == PERSON]
        if wanted in given[:1] or not (wanted or one.names):
            raise InputError(f"{person!r} goes by {one.character.label!r} already")
        outcome = CorrectedCharacter(
            number=one.character.number,
            names=(wanted,) if wanted else (),
            nameless=() if wanted else cast.tags(one),
        )
        told = f"{_called(one)} is {wanted}" if wanted else f"{_called(one)} has no name"
        return _record(session, cast, CorrectionKind.RENAME, told, [one], [outcome])


def merge(store: Store, video: str, person: str, into: str) -> Correction:
    """Two are one: ``into`` keeps its number, and gets the faces, voices and names of the other.

    Raises:
        NotFound: no such video or person.
        Ambiguous: several go by that name.
        InputError: they are one already.
    """
    with store.begin() as session:
        cast = cast_to_correct(session, video)
        one, other = find_person(cast, person), find_person(cast, into)
        if one.id == other.id:
            raise InputError(f"{person!r} and {into!r} are one already: {_called(one)}")
        outcome = CorrectedCharacter(
            number=other.character.number,
            members=(*cast.tags(other), *cast.tags(one)),
            names=tuple(dict.fromkeys(n.text for n in _given(other, one))),
        )
        told = f"{_called(one)} is {_called(other)}"
        return _record(session, cast, CorrectionKind.MERGE, told, [one, other], [outcome])


def split(store: Store, video: str, person: str, tags: Sequence[str], name: str = "") -> Correction:
    """Some faces and voices of a person are somebody else, who may be given a name.

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
    wanted = _name(name)
    with store.begin() as session:
        cast = cast_to_correct(session, video)
        one = find_person(cast, person)
        gone = _those(cast, one, person, tags)
        rest = [row for row in one.members if row not in gone]
        numbers = _numbers(cast, one, gone, rest)
        outcomes = [
            _part(cast, numbers[0], gone, (wanted,) if wanted else ()),
            _part(cast, numbers[1], rest, tuple(n.text for n in _given(one))),
        ]
        what = " and ".join(cast.origins[row].tag for row in gone)
        told = f"{what} of {_called(one)} is {wanted or 'somebody else'}"
        return _record(session, cast, CorrectionKind.SPLIT, told, [one], outcomes)


def apart(store: Store, video: str, person: str, other: str) -> Correction:
    """Two are two people, however alike: they are suggested as one no more.

    Of the faces and voices that they have now, none is joined to the other by the machine. A later
    `merge` has the last word.

    Raises:
        NotFound: no such video or person.
        Ambiguous: several go by that name.
        InputError: they are one, or were said to be two already.
    """
    with store.begin() as session:
        cast = cast_to_correct(session, video)
        one, two = find_person(cast, person), find_person(cast, other)
        if one.id == two.id:
            raise InputError(f"{person!r} and {other!r} are one: {_called(one)}; split them first")
        if kept_apart(session, cast, one, two):
            raise InputError(f"{_called(one)} and {_called(two)} are two people already")
        told = f"{_called(one)} and {_called(two)} are two people"
        outcomes = [
            CorrectedCharacter(number=a.character.number, members=cast.tags(a), others=cast.tags(b))
            for a, b in ((one, two), (two, one))
        ]
        return _record(session, cast, CorrectionKind.APART, told, [one, two], outcomes)


def kept_apart(session: Session, cast: VideoPeople, one: CharacterAt, other: CharacterAt) -> bool:
    """Whether people said that these are two."""
    truth = truth_of(stored.corrections_of(session, cast.video.id))
    return truth is not None and are_apart(truth, cast.tags(one), cast.tags(other))


def undo(store: Store, video: str, number: int | None = None) -> Correction:
    """Take a correction back: all is as if it had never been made.

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
        every = stored.corrections_of(session, found.id)
        one = _correction(every, found, number)
        later = [c for c in every if c.number > one.number and not c.undone and _overlap(c, one)]
        if later:
            last = later[-1]
            raise InputError(
                f"correction {last.number} ({last.told}) builds on correction {one.number}: "
                f"take that back first: homer people undo {found.id} {last.number}"
            )
        taken_back = one.model_copy(update={"undone": True})
        stored.change_correction(session, found.id, taken_back)
        record_deed(session, Deed.CHANGED_PEOPLE, f"{found.id} correction {one.number}")
        return taken_back


def history(store: Store, video: str) -> list[Correction]:
    """Every correction of a video, those that were taken back too, the oldest first.

    Raises:
        NotFound: no video goes by that name.
        Ambiguous: several do.
    """
    with store.begin(snapshot=True) as session:
        return stored.corrections_of(session, find_video(session, video).id)


def cast_to_correct(session: Session, video: str) -> VideoPeople:
    """The people of a video, whom nobody else corrects until this transaction ends."""
    stored.lock_corrections(session)
    return cast_of(session, video)


def cast_of(session: Session, name: str) -> VideoPeople:
    """The people of a video as they are now.

    Raises:
        NotFound: no video goes by that name.
        Ambiguous: several do.
    """
    video = find_video(session, name)
    origins = {one.identity: one for one in stored.origins_of(session, video.id)}
    return VideoPeople(video, characters_at(session, video.id, NOW), origins)


def _record(
    session: Session,
    cast: VideoPeople,
    kind: CorrectionKind,
    told: str,
    about: Sequence[CharacterAt],
    outcomes: Sequence[CorrectedCharacter],
) -> Correction:
    numbers = set().union(*(cast.began(one) for one in about))
    made = stored.add_correction(session, cast.video.id, kind, told, sorted(numbers), outcomes)
    record_deed(session, Deed.CHANGED_PEOPLE, f"{cast.video.id} correction {made.number}")
    return made


def _known(
    cast: VideoPeople, one: CharacterAt, times: dict[int, Appearances], maybe: Sequence[MaybeSame]
) -> KnownPerson:
    of = {row: times[row] for row in one.members if row in times}
    faces = [row for row in of if cast.origins[row].kind == "face"]
    seen = sum(of[row].times for row in faces)
    spans = of.values()
    return KnownPerson(
        number=one.character.number,
        label=one.character.label,
        names=tuple(KnownName(name=n.text, source=n.source) for n in one.names),
        tags=cast.tags(one),
        seen=seen,
        heard=sum(a.times for a in spans) - seen,
        span=TimeSpan.of(min(a.start_ms for a in spans), max(a.end_ms for a in spans))
        if spans
        else None,
        maybe=tuple(maybe),
    )


def _name(text: str) -> str:
    """A name fit to be kept: one line without what passes for a tag."""
    plain = "".join(c if c.isprintable() else " " for c in escape_tags(make_storable(text)))
    name = " ".join(plain.split())
    if len(name) > LONGEST_NAME:
        raise InputError(f"a name of {len(name)} characters: at most {LONGEST_NAME} are kept")
    return name


def _called(one: CharacterAt) -> str:
    """A person in a sentence: with number, and name where there is one."""
    number = one.character.number
    return f"{number} ({one.character.name})" if one.character.name else str(number)


def _given(*people: CharacterAt) -> list[Name]:
    """The names that people gave, in order."""
    return [name for one in people for name in one.names if name.source == PERSON]


def find_person(cast: VideoPeople, wanted: str) -> CharacterAt:
    """The person of that number, tag or name.

    Raises:
        NotFound: nobody goes by it.
        Ambiguous: several do.
    """
    ways = (_by_number(cast, wanted), _by_tag(cast, wanted), _by_name(cast, wanted))
    found = next((way for way in ways if way), [])
    if len(found) > 1:
        named = ", ".join(_called(one) for one in found)
        raise Ambiguous(f"several people go by {wanted!r}: {named}; give the number")
    if not found:
        raise NotFound(
            f"nobody goes by {wanted!r} in {cast.video.title}: "
            f"`homer people {cast.video.id}` lists numbers, tags and names"
        )
    return found[0]


def _by_number(cast: VideoPeople, wanted: str) -> list[CharacterAt]:
    """A number that went into somebody else stands for that one."""
    if not wanted.strip().isdecimal() or len(wanted) > LONGEST_NAME:
        return []
    number = int(wanted)
    exact = [one for one in cast.people if one.character.number == number]
    return exact or [one for one in cast.people if number in cast.began(one)]


def _by_tag(cast: VideoPeople, wanted: str) -> list[CharacterAt]:
    found = _TAG.fullmatch(wanted.strip().lower())
    if found is None:
        return []
    if found[1] == "character":
        return _by_number(cast, found[2])
    tag = f"<{found[1]}_{int(found[2])}>"
    return [one for one in cast.people if tag in cast.tags(one)]


def _by_name(cast: VideoPeople, wanted: str) -> list[CharacterAt]:
    name = " ".join(wanted.split()).casefold()
    return [one for one in cast.people if name in {n.text.casefold() for n in one.names}]


def _those(
    cast: VideoPeople, one: CharacterAt, person: str, tags: Sequence[str]
) -> tuple[int, ...]:
    """The members that tags name."""
    known = {cast.origins[row].tag: row for row in one.members}
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


def _numbers(
    cast: VideoPeople, one: CharacterAt, gone: Sequence[int], rest: Sequence[int]
) -> tuple[int, int]:
    """The numbers of both parts."""
    began = [{cast.origins[row].began for row in part} for part in (gone, rest)]
    number = one.character.number
    return (number, min(began[1])) if number in began[0] else (min(began[0]), number)


def _part(
    cast: VideoPeople, number: int, rows: Sequence[int], names: tuple[str, ...]
) -> CorrectedCharacter:
    members = tuple(cast.origins[row].tag for row in rows)
    return CorrectedCharacter(number=number, members=members, names=names)


def _correction(every: Sequence[Correction], video: Video, number: int | None) -> Correction:
    held = [one for one in every if not one.undone]
    if number is None:
        if not held:
            raise NotFound(f"no correction of {video.title} is in force: nothing to undo")
        return held[-1]
    found = next((one for one in every if one.number == number), None)
    if found is None:
        raise NotFound(f"there is no correction {number}: `homer people history {video.id}`")
    if found.undone:
        raise InputError(f"correction {number} ({found.told}) is undone already")
    return found


def _overlap(later: Correction, one: Correction) -> bool:
    """Whether ``later`` builds on ``one``.

    What was said to be apart is told by tags and stands on its own, but for whom a split made two.
    """
    if CorrectionKind.APART in (later.kind, one.kind) and one.kind is not CorrectionKind.SPLIT:
        return False
    return not set(later.numbers).isdisjoint(one.numbers)
