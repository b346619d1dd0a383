"""The persons of a library: characters of several videos that a user said are one; pure.

A character belongs to the persons whose ids its corrections give it. Characters that share an id,
also through others, are one person. So each video has its own part of what was said: deleting a
video, or importing one, changes nothing in the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from domain.people import CharacterRef, Correction, CorrectionKind

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
        return any(self._are_two(a, b) for a in ours for b in theirs)

    def _are_two(self, one: CharacterRef, other: CharacterRef) -> bool:
        pairs = ((self.differ, self.differ), (self.left, self.persons), (self.persons, self.left))
        return any(a.get(one, set()) & b.get(other, set()) for a, b in pairs)

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
                    _apply(links, character, correction.kind, set(outcome.persons))
    return links


def _apply(
    links: PersonLinks, character: CharacterRef, kind: CorrectionKind, ids: set[str]
) -> None:
    persons, left = links.persons.setdefault(character, set()), links.left
    if kind is CorrectionKind.JOIN:
        persons |= ids
        left.setdefault(character, set()).difference_update(ids)
    elif kind is CorrectionKind.LEAVE:
        persons -= ids
        left.setdefault(character, set()).update(ids)
    elif kind is CorrectionKind.DIFFER:
        links.differ.setdefault(character, set()).update(ids)
