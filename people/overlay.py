"""Lays users' corrections over what was learned about people; pure.

The learned rows are never changed by a person, and the corrections never by the machine. So a
correction holds whatever is learned later, at every moment of the video, and taking it back
leaves nothing behind.

- A face or voice that a person placed stays where it was placed.
- What was learned goes on around that: a voice follows the face that it was found to belong to,
  and faces that a person joined count as one when a voice is looked for.
- A voice and a face that a person called by different names, or said to be two people, are not
  joined by the machine.
- Number n always stands for the character that the n-th identity is in: so numbers are never
  given twice, and a character that is taken apart gives back the numbers that went into it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby

from domain.media import IdentityKind
from domain.people import Character, Correction, CorrectionKind
from people.characters import best_character
from store.queries.characters import CharacterAt, Name, preferred_name
from store.queries.corrections import LearnedName, Origin, StatedSupport
from store.queries.identities import IdentitySupport

USER_SOURCE = "person"
"""Source of the names that people give."""


@dataclass
class Overlay:
    """All corrections in force, the latest on each subject.

    Attributes:
        placements: The number of the character that a tag was placed in.
        names: What a character is called, the preferred name first.
        nameless: Tags whose learned names are set aside.
        distinct: For each tag those that are somebody else.
    """

    placements: dict[str, int] = field(default_factory=dict)
    names: dict[int, tuple[str, ...]] = field(default_factory=dict)
    nameless: set[str] = field(default_factory=set)
    distinct: dict[str, set[str]] = field(default_factory=dict)


def overlay_of(corrections: Iterable[Correction]) -> Overlay | None:
    """Combine the corrections in force, in order; None where there are none."""
    active = [one for one in corrections if not one.undone]
    overlay = Overlay()
    for one in sorted(active, key=lambda each: each.number):
        if one.kind is CorrectionKind.APART:
            _add_distinct(overlay, one)
            continue
        for number in one.numbers:
            overlay.names.pop(number, None)
        for outcome in one.outcomes:
            overlay.placements |= dict.fromkeys(outcome.members, outcome.number)
            overlay.nameless |= set(outcome.nameless)
            if outcome.names:
                overlay.names[outcome.number] = outcome.names
    return overlay if active else None


def _add_distinct(overlay: Overlay, one: Correction) -> None:
    for outcome in one.outcomes:
        for tag in outcome.members:
            overlay.distinct.setdefault(tag, set()).update(outcome.others)


def are_distinct(overlay: Overlay, tags: Iterable[str], other_tags: Iterable[str]) -> bool:
    """Tell whether users said that the people with these tags are two."""
    others = set(other_tags)
    return any(not others.isdisjoint(overlay.distinct.get(tag, ())) for tag in tags)


@dataclass(frozen=True)
class LearnedPeople:
    """What was learned of the people of a video as of a clip, without any correction."""

    characters: Sequence[CharacterAt]
    origins: Mapping[int, Origin]
    names: Sequence[LearnedName]
    stated: Sequence[StatedSupport]

    @cached_property
    def anchors(self) -> dict[int, int]:
        """For each identity that of the character it is in: its face, else its first voice."""
        return {row: self._anchor(one) for one in self.characters for row in one.members}

    def _anchor(self, one: CharacterAt) -> int:
        faces = (row for row in one.members if self.origins[row].kind == IdentityKind.FACE)
        return next(faces, one.members[0])

    def tag(self, identity: int) -> str:
        """Return the tag of an identity."""
        return self.origins[identity].tag


def apply_overlay(learned: LearnedPeople, overlay: Overlay) -> list[CharacterAt]:
    """Return the characters with the corrections applied, by number."""
    view = _OverlaidPeople(learned, overlay)
    before = {one.character.number: one for one in learned.characters}
    after = [
        _unchanged(view, before.get(number), members) or view.character(number, members)
        for number, members in sorted(view.groups.items())
    ]
    taken = {one.character.name for one in after}
    return [_without_taken_aliases(one, taken) for one in after]


def _unchanged(
    view: _OverlaidPeople, before: CharacterAt | None, members: Sequence[int]
) -> CharacterAt | None:
    if before is None or set(before.members) != set(members):
        return None
    named = before.character.number in view.given or any(map(view.has_no_name, members))
    return None if named else before


def _without_taken_aliases(one: CharacterAt, taken: set[str | None]) -> CharacterAt:
    """Return the character without former names that others go by."""
    aliases = tuple(name for name in one.character.aliases if name not in taken)
    if aliases == one.character.aliases:
        return one
    character = one.character.model_copy(update={"aliases": aliases})
    return replace(one, character=character)


class _OverlaidPeople:
    """The learned people with the corrections applied."""

    def __init__(self, learned: LearnedPeople, overlay: Overlay) -> None:
        self._learned, self._overlay = learned, overlay
        self.homes = self._homes()
        self.groups = self._groups()
        self.given = self._names_from_users()

    def _homes(self) -> dict[int, int]:
        """Return the number of the character that each identity is in."""
        homes = {}
        for one in self._learned.characters:
            for row in one.members:
                anchor = self._placement(self._learned.anchors[row], one.character.number)
                homes[row] = self._placement(row, anchor)
        return homes | {
            voice: self._character_of_voice(voice, homes) for voice in self._voices_to_place()
        }

    def _placement(self, identity: int, default: int) -> int:
        return self._overlay.placements.get(self._learned.tag(identity), default)

    def _voices_to_place(self) -> list[int]:
        """Return voices that nobody placed, of which people said something that counts for them."""
        voices = {
            one.voice
            for one in self._learned.stated
            if self._learned.tag(one.face) in self._overlay.placements
            or self._learned.origins[one.voice].began in self._overlay.names
            or self._learned.tag(one.voice) in self._overlay.distinct
        }
        return [
            row for row in sorted(voices) if self._learned.tag(row) not in self._overlay.placements
        ]

    def _character_of_voice(self, voice: int, homes: Mapping[int, int]) -> int:
        """Return a voice's character by the statements, as if corrections had always been known."""
        home = own = self._learned.origins[voice].began
        totals: dict[int, IdentitySupport] = {}
        own_support = (one for one in self._learned.stated if one.voice == voice)
        for _, stated in groupby(own_support, key=lambda one: one.clip):
            for one in stated:
                before = totals[one.face].total if one.face in totals else 0.0
                total = before + one.support
                totals[one.face] = IdentitySupport(one.face, voice, one.face_number, total, 1)
            best = best_character(list(totals.values()), homes)
            if best is not None and not self._conflict(own, best, voice, homes):
                home = best
        return home

    def _conflict(self, one: int, other: int, voice: int, homes: Mapping[int, int]) -> bool:
        """Check whether people call these two by different names, or say that they are two."""
        names = [{n.casefold() for n in self._overlay.names.get(c, ())} for c in (one, other)]
        if all(names) and not names[0] & names[1]:
            return True
        tags = [self._learned.tag(row) for row, home in homes.items() if home == other]
        return are_distinct(self._overlay, [self._learned.tag(voice)], tags)

    def _groups(self) -> dict[int, list[int]]:
        groups: dict[int, list[int]] = {}
        for row in sorted(self.homes, key=lambda r: self._learned.origins[r][1:3]):
            groups.setdefault(self.homes[row], []).append(row)
        return groups

    def _names_from_users(self) -> dict[int, tuple[str, ...]]:
        """What people call each character, also by the name of one that became part of it."""
        originals = {self._learned.origins[row].began: home for row, home in self.homes.items()}
        user_names: dict[int, tuple[str, ...]] = {}
        homes = {n: n if n in self.groups else originals.get(n, n) for n in self._overlay.names}
        for number, home in sorted(homes.items(), key=lambda one: (one[0] != one[1], one[0])):
            user_names[home] = _unique_texts(
                [*user_names.get(home, ()), *self._overlay.names[number]]
            )
        return user_names

    def has_no_name(self, identity: int) -> bool:
        """Whether the names learned of an identity, or of the face it follows, are set aside."""
        tag, anchor = self._learned.tag(identity), self._learned.anchors[identity]
        follows = tag not in self._overlay.placements and self.homes[anchor] == self.homes[identity]
        named = {tag, self._learned.tag(anchor)} if follows else {tag}
        return not named.isdisjoint(self._overlay.nameless)

    def character(self, number: int, members: Sequence[int]) -> CharacterAt:
        """Return the character of that number."""
        origins = [self._learned.origins[row] for row in members]
        first = min(one.first_clip for one in origins)
        given = [Name(text, USER_SOURCE, first) for text in self.given.get(number, ())]
        every = self._learned_names(members)
        names = _unique_names([*given, *(name for row, name in every if not self.has_no_name(row))])
        preferred = preferred_name(names)
        hidden = given or any(self.has_no_name(row) for row in members)
        former = (
            _unique_texts([name.text for _, name in every if name.text != preferred])
            if hidden
            else ()
        )
        character = Character(
            number=number,
            name=preferred,
            faces=tuple(o.number for o in origins if o.kind == IdentityKind.FACE),
            voices=tuple(o.number for o in origins if o.kind == IdentityKind.VOICE),
            aliases=former,
        )
        return CharacterAt(self._rows[number], character, tuple(members), tuple(names), first)

    @cached_property
    def _rows(self) -> dict[int, int]:
        return {one.began: one.character for one in self._learned.origins.values()}

    @cached_property
    def _first_identity(self) -> dict[int, int]:
        """The identity that each character row began with."""
        return {one.character: one.identity for one in self._learned.origins.values()}

    def _learned_names(self, members: Sequence[int]) -> list[tuple[int, Name]]:
        of = ((self._owner(one), one.name) for one in self._learned.names)
        return [(row, name) for row, name in of if row is not None and row in members]

    def _owner(self, name: LearnedName) -> int | None:
        return self._first_identity.get(name.character) if name.identity is None else name.identity


def _unique_names(names: Iterable[Name]) -> list[Name]:
    return list({name.text.casefold(): name for name in reversed([*names])}.values())[::-1]


def _unique_texts(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple({text.casefold(): text for text in reversed([*texts])}.values())[::-1]
