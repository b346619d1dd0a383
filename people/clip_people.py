"""Who is in a clip: the identity of each group, and the characters that they form."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from domain.media import IdentityKind
from domain.people import TAG, Character, Identity

_NOT_IN_INTRODUCTION = "".join(
    f"(?<!{told} )" for told in ("name is", "name['’]s", "I['’]m", "I am", "named")
)
"""Whoever says "my name is Jeff" said so, whatever the name is found to be."""


@dataclass(frozen=True)
class ClipPeople:
    """The people of one clip.

    Attributes:
        faces: The identity of each face group, by the group's number in the clip.
        voices: The identity of each voice group.
        speakers: The voice of each speaker that the source names.
        characters: The characters these identities belong to, as known before the clip.
    """

    faces: Mapping[int, Identity] = field(default_factory=dict)
    voices: Mapping[int, Identity] = field(default_factory=dict)
    speakers: Mapping[str, Identity] = field(default_factory=dict)
    characters: tuple[Character, ...] = ()

    def identities(self) -> dict[str, Identity]:
        """Return the identities of the clip by tag, faces first, by number."""
        every = [*self.faces.values(), *self.voices.values(), *self.speakers.values()]
        ordered = sorted(every, key=lambda one: (one.kind, one.number))
        return {one.tag: one for one in ordered}

    def tags(self) -> frozenset[str]:
        """Return every tag that a writer may use for this clip."""
        return frozenset(self.identities()) | {one.tag for one in self.characters}

    def members(self, tag: str) -> tuple[Identity, ...]:
        """Return the identities of this clip that a tag stands for: itself, or a character's."""
        known = self.identities()
        if tag in known:
            return (known[tag],)
        person = next((one for one in self.characters if one.tag == tag), None)
        if person is None:
            return ()
        tags = [f"<{IdentityKind.FACE}_{n}>" for n in person.faces]
        tags += [f"<{IdentityKind.VOICE}_{n}>" for n in person.voices]
        return tuple(known[one] for one in tags if one in known)

    def character(self, tag: str) -> Character | None:
        """Return the character that a tag belongs to."""
        found = TAG.fullmatch(tag)
        if found is None:
            return None
        return self._character_by_tag.get((found[1], int(found[2])))

    @cached_property
    def _character_by_tag(self) -> dict[tuple[str, int], Character]:
        """The character of each kind of tag and number; the first where several have it."""
        owned = ((key, one) for one in reversed(self.characters) for key in _tag_keys(one))
        return dict(owned)

    def label(self, tag: str) -> str:
        """Return the known name of the tag's character, else the tag itself.

        A speaker whom the source names goes by the name that a person gave instead.
        """
        person = self.character(tag)
        if person is None:
            return self.replaced_names.get(tag, tag)
        return person.name or tag

    @cached_property
    def replaced_names(self) -> dict[str, str]:
        """What replaces the names that a person set aside."""
        return {alias: one.label for one in self.characters for alias in one.aliases}

    def update_names(self, text: str) -> str:
        """Return a text that Homer wrote, with tags and replaced names as they are now."""
        return self.display(replace_names(self.replaced_names, text))

    def display(self, text: str) -> str:
        """``text`` as readers see it: each tag by name, or by the number of who has several.

        Stored memories keep the tags of faces and voices (``replace_tags``), since a merge can be
        undone.
        """
        return TAG.sub(self._display_tag, text) if "<" in text else text

    def _display_tag(self, found: re.Match[str]) -> str:
        person = self.character(found[0])
        return found[0] if person is None else person.shown(found[0])

    def replace_tags(self, text: str) -> str:
        """Replace every tag in a text by the name known for it, if any."""
        return TAG.sub(lambda found: self.label(found[0]), text) if "<" in text else text


def replace_names(names: Mapping[str, str], text: str) -> str:
    """Replace whole names in a text, the longest first, except where a name is introduced."""
    if not names:
        return text
    # A name may be a part of what replaces it, which then stands there already.
    replacements = {**{new: new for new in names.values()}, **names}
    longest = sorted(replacements, key=len, reverse=True)
    pattern = rf"{_NOT_IN_INTRODUCTION}(?<!\w)(?:{'|'.join(map(re.escape, longest))})(?!\w)"
    return re.sub(pattern, lambda found: replacements[found[0]], text)


def _tag_keys(person: Character) -> Iterator[tuple[str, int]]:
    """Yield kind and number of each of a character's tags."""
    yield from (("character", number) for number in (person.number, *person.joined))
    yield from ((IdentityKind.FACE, number) for number in person.faces)
    yield from ((IdentityKind.VOICE, number) for number in person.voices)
