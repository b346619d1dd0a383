"""Joins the identities of one person into a character with a number and names.

Every face and voice starts as a character of its own. Accepted statements "this face is this
voice" move the voice to the face's character (section 3.2). Numbers are never reused, and every
change is valid from the clip at which it was learned.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from sqlalchemy.orm import Session

from domain.media import Group, IdentityKind, Percept
from domain.people import TAG, Character, Identity, IdentityStatement, escape_tags
from domain.time import TimeSpan, merge_close_spans
from people.identities import Recognised
from store.queries import characters as stored

# Who is in a clip: the identity of each group, and the characters that they form.

_NOT_AFTER_INTRODUCTION = "".join(
    f"(?<!{phrase} )" for phrase in ("name is", "name['’]s", "I['’]m", "I am", "named")
)
"""Lookbehinds that keep a name as it was said in "my name is Jeff", even where it is replaced."""


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
        identities = [*self.faces.values(), *self.voices.values(), *self.speakers.values()]
        ordered = sorted(identities, key=lambda identity: (identity.kind, identity.number))
        return {identity.tag: identity for identity in ordered}

    def tags(self) -> frozenset[str]:
        return frozenset(self.identities()) | {character.tag for character in self.characters}

    def members(self, tag: str) -> tuple[Identity, ...]:
        """Return the clip's identities that a tag stands for: one, or all of a character."""
        identities = self.identities()
        if tag in identities:
            return (identities[tag],)
        person = next((character for character in self.characters if character.tag == tag), None)
        if person is None:
            return ()
        tags = [f"<{IdentityKind.FACE}_{n}>" for n in person.faces]
        tags += [f"<{IdentityKind.VOICE}_{n}>" for n in person.voices]
        return tuple(identities[member] for member in tags if member in identities)

    def character(self, tag: str) -> Character | None:
        """Return the character that a tag belongs to; None where there is none."""
        match = TAG.fullmatch(tag)
        if match is None:
            return None
        return self._character_by_tag.get((match[1], int(match[2])))

    @cached_property
    def _character_by_tag(self) -> dict[tuple[str, int], Character]:
        """Map each tag's kind and number to its character; the first where several have it."""
        owned = (
            (key, character)
            for character in reversed(self.characters)
            for key in _tag_keys(character)
        )
        return dict(owned)

    def label(self, tag: str) -> str:
        """Return the known name of the tag's character, else the tag itself.

        A name from the source is replaced by the one that a user gave instead.
        """
        person = self.character(tag)
        if person is None:
            return self.replaced_names.get(tag, tag)
        return person.name or tag

    @cached_property
    def replaced_names(self) -> dict[str, str]:
        """Map each name that a user replaced to the label that replaces it."""
        return {
            alias: character.label for character in self.characters for alias in character.aliases
        }

    def update_names(self, text: str) -> str:
        """Replace tags and former names in a generated text by the current names."""
        return self.display(replace_names(self.replaced_names, text))

    def display(self, text: str) -> str:
        """Replace each tag by its person's name, or by the character's tag without one.

        Stored memories keep the tags of faces and voices (``replace_tags``), since a merge can be
        undone.
        """
        return TAG.sub(self._display_tag, text) if "<" in text else text

    def _display_tag(self, match: re.Match[str]) -> str:
        person = self.character(match[0])
        return match[0] if person is None else person.label

    def replace_tags(self, text: str) -> str:
        """Replace every tag by the name known for it, if any."""
        return TAG.sub(lambda match: self.label(match[0]), text) if "<" in text else text


def people_at(session: Session, video_id: str, clip: int) -> ClipPeople:
    """Return the people of a video as they were known after ``clip``."""
    found = stored.characters_at(session, video_id, clip)
    return ClipPeople(characters=tuple(one.character for one in found))


def replace_names(names: Mapping[str, str], text: str) -> str:
    """Replace whole names, the longest first, except right after words of introduction.

    ``names``: former name -> new name.
    """
    if not names:
        return text
    # A new name may contain the old one: an occurrence of the new one is matched first and kept.
    replacements = {**{new: new for new in names.values()}, **names}
    longest = sorted(replacements, key=len, reverse=True)
    pattern = rf"{_NOT_AFTER_INTRODUCTION}(?<!\w)(?:{'|'.join(map(re.escape, longest))})(?!\w)"
    return re.sub(pattern, lambda match: replacements[match[0]], text)


def _tag_keys(person: Character) -> Iterator[tuple[str, int]]:
    yield from (("character", number) for number in (person.number, *person.joined))
    yield from ((IdentityKind.FACE, number) for number in person.faces)
    yield from ((IdentityKind.VOICE, number) for number in person.voices)


ACCEPT_SUPPORT = 4.0
"""Support at which a statement is accepted; one second of speech with one face in view is 1."""

MODEL_SUPPORT = 3.0
"""Support of a model's statement for one clip.

It is below ``ACCEPT_SUPPORT``: a statement for a second clip, or a second of speech with only that
face in view, is needed too.
"""

ACCEPT_SHARE = 0.6
"""A voice's best character must have at least this share, in [0, 1], of the voice's support."""


@dataclass(frozen=True)
class NameClaim:
    """A name that a clip states for a tag, with its source (said, read, caption or model)."""

    tag: str
    name: str
    source: str


def name_speakers(session: Session, video_id: str, recognised: Recognised, clip: int) -> None:
    """Name the new voices of speakers that the source names."""
    for name, identity in recognised.new_speakers:
        stored.add_name(session, video_id, identity.id, name, "caption", clip)


def limit_model_statements(statements: Iterable[IdentityStatement]) -> list[IdentityStatement]:
    """Keep one model statement per voice of a clip, with ``MODEL_SUPPORT`` at most.

    Several statements of a model about one voice in one clip are no independent evidence.
    """
    limited: list[IdentityStatement] = []
    model_voices: set[int] = set()
    for statement in statements:
        if not statement.by_model:
            limited.append(statement)
        elif statement.voice not in model_voices:
            model_voices.add(statement.voice)
            limited.append(
                statement.model_copy(update={"support": min(statement.support, MODEL_SUPPORT)})
            )
    return limited


def best_character(supports: Mapping[int, float], character_of: Mapping[int, int]) -> int | None:
    """Return the character that one voice belongs to according to the statements.

    Args:
        supports: All support for the voice by face, in the order of the faces' numbers.
        character_of: The character of each face.

    Returns:
        The character with the most support, on a tie that of the lowest face number; None while its
        support is below ``ACCEPT_SUPPORT`` or its share below ``ACCEPT_SHARE``.
    """
    totals: dict[int, float] = {}
    for face, support in supports.items():
        character = character_of[face]
        totals[character] = totals.get(character, 0.0) + support
    best = max(totals, key=lambda character: totals[character], default=None)
    if best is None or totals[best] < ACCEPT_SUPPORT:
        return None
    return best if totals[best] >= ACCEPT_SHARE * sum(totals.values()) else None


def name_characters(
    session: Session, video_id: str, claims: Iterable[NameClaim], people: ClipPeople, clip: int
) -> None:
    """Name characters; a name that a character already has is not added again."""
    for claim in claims:
        rows = [identity.id for identity in people.members(claim.tag)]
        for character in stored.learned_with(session, video_id, rows, clip):
            existing_names = {name.name.casefold() for name in character.names}
            name = escape_tags(claim.name)
            if name.casefold() not in existing_names:
                row = next(row for row in rows if row in character.members)
                stored.add_name(session, video_id, row, name, claim.source, clip)


def source_of_name(tag: str, writer_source: str) -> str:
    """Return a name's source: the writer's, else read for a face and said for a voice."""
    if writer_source:
        return writer_source
    match = TAG.fullmatch(tag)
    return "read" if match and match[1] == IdentityKind.FACE else "said"


def identities_of_tags(people: ClipPeople, tags: Iterable[str]) -> list[Identity]:
    """Return the identities of the clip that these tags stand for, without repeats."""
    identities = [identity for tag in tags for identity in people.members(tag)]
    return list({identity.id: identity for identity in identities}.values())


# Finds evidence within one clip that a face and a voice are one person; pure.


VISIBLE_GAP_MS = 1_000
"""A face seen twice within this time counts as visible in between."""

MIN_SPEECH_MS = 1_000
"""Shorter speech with one face in view is no evidence."""


def visible_spans(group: Group) -> list[TimeSpan]:
    """Return the spans in which a group is visible (or audible), in order."""
    return merge_close_spans((sighting.span for sighting in group.sightings), VISIBLE_GAP_MS)


def spans_alone(groups: Sequence[Group]) -> dict[int, list[TimeSpan]]:
    """Return the spans in which each group is the only one visible, by the group's number."""
    visible_by_group = {group.number: visible_spans(group) for group in groups}
    alone = {}
    for number, spans in visible_by_group.items():
        left = list(spans)
        for cut in (s for n, others in visible_by_group.items() if n != number for s in others):
            left = [piece for span in left for piece in _subtract_one(span, cut)]
        alone[number] = left
    return alone


def _subtract_one(span: TimeSpan, cut: TimeSpan) -> list[TimeSpan]:
    if cut.end_ms < span.start_ms or cut.start_ms > span.end_ms:
        return [span]
    edges = [(span.start_ms, cut.start_ms), (cut.end_ms, span.end_ms)]
    return [TimeSpan.of(start, end) for start, end in edges if end > start]


def speaking_alone(percept: Percept) -> list[tuple[int, int, float]]:
    """Return (face, voice, seconds): how long a voice is heard with only that face visible.

    Faces and voices are given by the numbers of their groups.

    Overlapping speech counts for no voice.
    """
    faces, voices = spans_alone(percept.faces), spans_alone(percept.voices)
    pairs = []
    for face, face_spans in sorted(faces.items()):
        for voice, voice_spans in sorted(voices.items()):
            shared = sum(a.overlap_ms(b) for a in face_spans for b in voice_spans)
            if shared >= MIN_SPEECH_MS:
                pairs.append((face, voice, shared / 1000))
    return pairs
