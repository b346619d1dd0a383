"""Says who is who in different videos: join, split off, keep apart, name.

Each change is a correction in every video that it concerns; `corrections.undo` undoes them as one.
It changes nothing within a video, except a name, which holds in all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from uuid import uuid4

from sqlalchemy.orm import Session

from domain.errors import InputError
from domain.memories import Scope
from domain.people import CharacterRef, CorrectedCharacter, Correction, CorrectionKind
from domain.words import marked
from people.characters import place_people
from people.corrections import (
    LAST_CLIP,
    already_named,
    clean_name,
    describe_person,
    find_person,
    has_name,
    people_of_video,
    record_correction,
    rename_character,
)
from store.database import Store
from store.queries import characters as stored
from store.queries.characters import USER_SOURCE, CharacterAt, people_in_view

# The persons of a library: characters of several videos that a user said are one; pure.
#
# A character belongs to the persons whose ids its corrections give it. Characters that share an id,
# also through others, are one person. So each video has its own part of what was said: deleting a
# video, or importing one, changes nothing in the others.

Persons = frozenset[CharacterRef]
"""The characters that are one person."""


@dataclass
class PersonLinks:
    """What the corrections in force say of characters of different videos.

    Attributes:
        persons: The ids of the persons that each character belongs to.
        left: The ids of the persons that it was split off.
        differ: The ids that it shares with characters that are somebody else.
    """

    persons: dict[CharacterRef, set[str]] = field(default_factory=dict)
    left: dict[CharacterRef, set[str]] = field(default_factory=dict)
    differ: dict[CharacterRef, set[str]] = field(default_factory=dict)

    def person_of(self, character: CharacterRef) -> Persons:
        """Return all characters that are the same person as this one, itself included."""
        found, waiting = {character}, [character]
        while waiting:
            ids = self.persons.get(waiting.pop(), ())
            new = {other for one in ids for other in self._characters_by_id[one]} - found
            found |= new
            waiting += new
        return frozenset(found)

    def joined_persons(self) -> list[Persons]:
        """Return the persons with several characters, in no order."""
        persons = {self.person_of(character) for character in self.persons}
        return [person for person in persons if len(person) > 1]

    def are_two(self, one: Iterable[CharacterRef], other: Iterable[CharacterRef]) -> bool:
        """Tell whether users said that a character of ``one`` is none of ``other``."""
        ours, theirs = list(one), list(other)
        pairs = ((self.differ, self.differ), (self.left, self.persons), (self.persons, self.left))
        return any(
            first.get(a, set()) & second.get(b, set())
            for a in ours
            for b in theirs
            for first, second in pairs
        )

    @cached_property
    def _characters_by_id(self) -> dict[str, set[CharacterRef]]:
        by_id: dict[str, set[CharacterRef]] = {}
        for character, ids in self.persons.items():
            for one in ids:
                by_id.setdefault(one, set()).add(character)
        return by_id


def links_of(
    corrections: Mapping[str, Sequence[Correction]], numbers: Mapping[str, Mapping[int, int]]
) -> PersonLinks:
    """Combine the corrections about characters of different videos.

    Args:
        corrections: Those of each video, in order.
        numbers: For each video, the number of the character that each number stands for now.
    """
    links = PersonLinks()
    for video, made in corrections.items():
        for correction in made:
            for outcome in correction.outcomes:
                number = numbers.get(video, {}).get(outcome.number)
                if number is not None and not correction.undone:
                    character = CharacterRef(video=video, number=number)
                    ids, kind = set(outcome.persons), correction.kind
                    persons = links.persons.setdefault(character, set())
                    if kind is CorrectionKind.JOIN:
                        persons |= ids
                        links.left.setdefault(character, set()).difference_update(ids)
                    elif kind is CorrectionKind.LEAVE:
                        persons -= ids
                        links.left.setdefault(character, set()).update(ids)
                    elif kind is CorrectionKind.DIFFER:
                        links.differ.setdefault(character, set()).update(ids)
    return links


def person_links(session: Session) -> PersonLinks:
    """Return what users said of characters of different videos, as it is now."""
    corrections = stored.corrections_across_videos(session)
    scopes = [Scope(video=video, last_clip=LAST_CLIP) for video in corrections]
    people = people_in_view(session, scopes) if scopes else {}
    numbers = {
        video: {n: one.number for one in characters for n in (*one.joined, one.number)}
        for video, characters in people.items()
    }
    return links_of(corrections, numbers)


def join(
    store: Store, video: str, person: str, other_video: str, other: str, why: str = ""
) -> Correction:
    """Join two characters of different videos, and all that are joined to either, as one person.

    Their numbers within the videos stay. A name that a user gave to one of them holds for all that
    have no such name, a learned one for those without any.

    Returns the correction of the first video; its history says ``why`` after "as".

    Raises:
        NotFound: no such video or person.
        Ambiguous: several go by that name.
        InputError: both are of one video, are one already, or a user said that some of those who
            would be joined are two people.
    """
    with store.begin() as session:
        change = _Change(session)
        return change.join(change.find(video, person), change.find(other_video, other), why)


def keep_apart(store: Store, video: str, person: str, other_video: str, other: str) -> Correction:
    """Record that two characters of different videos are two people; they are suggested no more.

    Raises:
        NotFound: no such video or person.
        Ambiguous: several go by that name.
        InputError: both are of one video, or they are one, or two already.
    """
    with store.begin() as session:
        change = _Change(session)
        one, another = change.find(video, person), change.find(other_video, other)
        change.require_two_videos(one, another)
        if another in change.links.person_of(one):
            raise InputError(
                f"{change.describe(one, another)} are one: split one of them off first"
            )
        if change.links.are_two([one], [another]):
            raise InputError(f"{change.describe(one, another)} are two people already")
        told = {
            a: marked(f"Kept {change.name(a)} and {_elsewhere(b)} apart")
            for a, b in ((one, another), (another, one))
        }
        return change.record(CorrectionKind.DIFFER, told, (uuid4().hex,), uuid4().hex)


def split_off(store: Store, video: str, person: str) -> Correction:
    """Split a character off the person that it was joined with; the others stay joined.

    A name that it got when it was joined is no longer its own.

    Raises:
        NotFound: no such video or person.
        Ambiguous: several go by that name.
        InputError: it is not joined with a character of another video.
    """
    with store.begin() as session:
        change = _Change(session)
        one = change.find(video, person)
        if len(change.links.person_of(one)) == 1:
            raise InputError(f"{change.name(one)} is joined with nobody in another video")
        told = {one: marked(f"Split {change.name(one)} off the same person in other videos")}
        ids = tuple(sorted(change.links.persons[one]))
        done = change.record(CorrectionKind.LEAVE, told, ids, uuid4().hex)
        made = stored.corrections_of(session, one.video)
        joins = {
            correction.act
            for correction in made
            if correction.kind is CorrectionKind.JOIN
            and any(set(ids) & set(outcome.persons) for outcome in correction.outcomes)
        }
        names = [c for c in made if c.kind is CorrectionKind.RENAME and one.number in c.numbers]
        # One that was given since stays.
        if names and names[-1].act in joins and not names[-1].undone:
            undone = names[-1].model_copy(update={"undone": True})
            stored.change_correction(session, one.video, undone)
            place_people(session, one.video)
        return done


def rename(store: Store, video: str, person: str, name: str) -> Correction:
    """Set a person's preferred name, in all videos that they are joined across.

    Returns the correction of this video. Without a name they are shown by a tag, and learned names
    are ignored.

    Raises:
        NotFound: no such video or person.
        Ambiguous: several go by that name.
        InputError: the person goes by this name already, or has none to remove.
    """
    new_name = clean_name(name)
    with store.begin() as session:
        change = _Change(session)
        one = change.find(video, person)
        everywhere = sorted(change.links.person_of(one), key=lambda ref: (ref != one, ref.video))
        first, *others = [(change.people(ref.video), change.character(ref)) for ref in everywhere]
        to_name = [(people, who) for people, who in others if not has_name(who, new_name)]
        if not to_name and has_name(first[1], new_name):
            raise InputError(already_named(change.name(one), new_name))
        act = uuid4().hex
        named = (first, *to_name)
        done = [rename_character(session, its, who, new_name, act) for its, who in named]
        return done[0]


def characters_of_person(store: Store, video: str, person: str) -> list[CharacterRef]:
    """Return a character of a video, then those that are joined with it.

    Raises:
        NotFound: no such video or person.
        Ambiguous: several go by that name.
    """
    with store.begin(snapshot=True) as session:
        people = people_of_video(session, video)
        number = find_person(people, person).character.number
        one = CharacterRef(video=people.video.id, number=number)
        return [one, *sorted(person_links(session).person_of(one) - {one}, key=_order)]


def _elsewhere(character: CharacterRef) -> str:
    """Name a character in a correction of another video: by its number, which says nothing else."""
    return marked(f"person {character.number} of video {character.video}")


class _Change:
    """One change of who is who in different videos, in a transaction that locks corrections."""

    def __init__(self, session: Session) -> None:
        stored.lock_corrections(session)
        self._session = session
        self.links = person_links(session)
        self.people = cache(partial(people_of_video, session))

    def find(self, video: str, person: str) -> CharacterRef:
        """Find a character by names of a video and of a person."""
        people = people_of_video(self._session, video)
        number = find_person(people, person).character.number
        return CharacterRef(video=people.video.id, number=number)

    def character(self, ref: CharacterRef) -> CharacterAt:
        return find_person(self.people(ref.video), str(ref.number))

    def name(self, ref: CharacterRef) -> str:
        """Name a character in a sentence about its own video."""
        return describe_person(self.character(ref))

    def describe(self, *refs: CharacterRef) -> str:
        """Name characters in a message to the user, each with the title of its video."""
        named = [f"{self.name(ref)} of {self.people(ref.video).video.title}" for ref in refs]
        return " and ".join(named)

    def require_two_videos(self, one: CharacterRef, other: CharacterRef) -> None:
        """Check that two characters are of different videos.

        Raises:
            InputError: they are not.
        """
        if one.video == other.video:
            title = self.people(one.video).video.title
            raise InputError(f"{self.name(one)} and {self.name(other)} are both of {title}")

    def join(self, one: CharacterRef, other: CharacterRef, why: str) -> Correction:
        """Join the persons of two characters; return the correction of the first one's video."""
        self.require_two_videos(one, other)
        ours, theirs = self.links.person_of(one), self.links.person_of(other)
        if ours == theirs:
            raise InputError(f"{self.describe(one, other)} are one already")
        for ref in sorted(ours, key=_order):
            for apart in sorted(theirs, key=_order):
                # The pair that the user names is left out: they say now that it is one.
                if (ref, apart) != (one, other) and self.links.are_two([ref], [apart]):
                    raise InputError(
                        f"{self.describe(ref, apart)} were said to be two people: undo that first "
                        f"(homer people history {ref.video})"
                    )
        everybody = sorted(ours | theirs, key=_order)
        ids = (one for ref in max(ours, theirs, key=len) for one in self.links.persons.get(ref, ()))
        person = min(ids, default=uuid4().hex)
        lacking = [ref for ref in everybody if person not in self.links.persons.get(ref, ())]
        told = {
            ref: self._joined(ref, other if ref in ours else one, why)
            for ref in dict.fromkeys((one, other, *lacking))
        }
        act, named = uuid4().hex, {ref: self.character(ref) for ref in everybody}
        made = self.record(CorrectionKind.JOIN, told, (person,), act)
        names = [name for ref in (one, other, *everybody) for name in named[ref].names]
        for best in sorted(names, key=lambda name: name.source != USER_SOURCE)[:1]:
            for ref, who in named.items():
                given = any(name.source == USER_SOURCE for name in who.names)
                if not who.names or (best.source == USER_SOURCE and not given):
                    rename_character(self._session, self.people(ref.video), who, best.name, act)
        return made

    def _joined(self, ref: CharacterRef, other: CharacterRef, why: str) -> str:
        if why:
            return marked(f"Joined {self.name(ref)} with {_elsewhere(other)}, as {why}")
        return marked(f"Joined {self.name(ref)} with {_elsewhere(other)}")

    def record(
        self, kind: CorrectionKind, told: dict[CharacterRef, str], ids: Iterable[str], act: str
    ) -> Correction:
        """Record a correction of an act for each character; return that of the first one."""
        persons = tuple(ids)
        made = []
        for ref, text in told.items():
            people, who = self.people(ref.video), self.character(ref)
            # A split applies to all numbers that stand for this character, whichever was joined.
            is_leave = kind is CorrectionKind.LEAVE
            numbers = sorted(who.numbers) if is_leave else [ref.number]
            outcomes = [CorrectedCharacter(number=number, persons=persons) for number in numbers]
            made.append(record_correction(self._session, people, kind, text, [who], outcomes, act))
        return made[0]


def _order(ref: CharacterRef) -> tuple[str, int]:
    return ref.video, ref.number
