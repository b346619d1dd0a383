"""Identities recognised across clips, and the characters that they form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Generic, TypeVar

from pydantic import ConfigDict, Field, NonNegativeInt, PlainSerializer, PositiveInt

from domain.base import Frozen
from domain.media import IdentityKind
from domain.time import OfVideo, TimeSpan

P = TypeVar("P")

TAG_KINDS = ("face", "voice", "character")
TAG = re.compile(rf"<({'|'.join(TAG_KINDS)})_(\d{{1,9}})>")
"""How a person without a known name is written in memories, prompts and answers."""

_SENTENCE_END = re.compile(r"[.!?]\s+$")
GAP = 8
"""Characters before a tag in which a sentence ends, if the tag begins one."""
_WHO = {"face": "person", "voice": "speaker"}
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")


def escape_tags(text: str) -> str:
    """Escape tags in text that was said or read, so that none passes for a person: ``‹face_1›``."""
    return TAG.sub(r"‹\1_\2›", text) if "<" in text else text


def tag_name(tag: str) -> str:
    """Return ``<face_3>`` as ``face 3``."""
    return tag.strip("<>").replace("_", " ")


def tags_in(texts: Iterable[str]) -> set[str]:
    return {match[0] for text in texts for match in TAG.finditer(text)}


def tags_in_words(text: str) -> str:
    """Replace tags by words for readers.

    A character is "person 2", as pages and commands number people. A face or voice is "an unnamed
    person" or "an unnamed speaker", and the next one of its kind in the text "another". Of
    three and more, one that comes again is "the second unnamed speaker", in the text's order.
    """
    if "<" not in text:
        return text
    seen: dict[str, dict[str, int]] = {}

    def words(tag: re.Match[str]) -> str:
        places = seen.setdefault(tag[1], {})
        place, who = places.get(tag[2]), f"unnamed {_WHO.get(tag[1], '')}"
        if tag[1] == "character":
            said = f"person {tag[2]}"
        elif place is None:
            said = f"another {who}" if places else f"an {who}"
        elif len(places) > 2:
            known = place < len(_ORDINALS)
            said = f"the {_ORDINALS[place]} {who}" if known else f"another {who}"
        else:
            said = f"the other {who}" if place else f"the {who}"
        places.setdefault(tag[2], len(places))
        start = tag.start()
        begins = start == 0 or _SENTENCE_END.search(text[max(0, start - GAP) : start]) is not None
        return said[0].upper() + said[1:] if begins else said

    return TAG.sub(words, text)


class Identity(Frozen):
    """A face or voice recognised across clips; ``tag`` is how models see it (``<face_3>``).

    ``character`` is the number of the character that it began as, which is no other identity's.
    """

    model_config = ConfigDict(from_attributes=True)
    id: PositiveInt
    kind: IdentityKind
    number: NonNegativeInt
    first_clip: NonNegativeInt
    character: NonNegativeInt = 0

    @property
    def tag(self) -> str:
        return f"<{self.kind}_{self.number}>"


# A typed field of a writer's reply: in the authors' code it is a prefix in the text.
class IdentityStatement(Frozen):
    """Evidence from one clip that a face and a voice are one person, with its support.

    They go by their numbers in the clip, or by row ids where they are stored. ``by_model``: stated
    by a language model alone, not by anything perceived.
    """

    face: NonNegativeInt
    voice: NonNegativeInt
    clip: NonNegativeInt
    support: float = Field(gt=0)
    reason: str = ""
    by_model: bool = False


# The authors' code numbers people anew with each refresh.
class Character(Frozen):
    """One person: faces and voices joined under one number that never changes.

    ``aliases`` are names that a user replaced; earlier memories still have them. ``joined`` are the
    numbers of characters merged into this one.
    """

    number: NonNegativeInt
    name: str | None = None
    faces: tuple[NonNegativeInt, ...] = ()
    voices: tuple[NonNegativeInt, ...] = ()
    aliases: tuple[str, ...] = ()
    joined: tuple[NonNegativeInt, ...] = ()

    @property
    def tag(self) -> str:
        return f"<character_{self.number}>"

    @property
    def label(self) -> str:
        """The character's name, or its tag if unnamed."""
        return self.name or self.tag

    @property
    def tags(self) -> tuple[str, ...]:
        """Every tag of this person: the character's own, and those of its members."""
        return (
            self.tag,
            *(f"<character_{number}>" for number in self.joined),
            *(f"<face_{number}>" for number in self.faces),
            *(f"<voice_{number}>" for number in self.voices),
        )

    def shown(self, tag: str) -> str:
        """Return how readers see one of this person's tags, the same for all of them.

        That is the name if there is one. An unnamed person with a single face or voice keeps that
        tag, which says whether they were seen or heard; otherwise it is the character's tag.
        """
        if self.name:
            return self.name
        is_single = len(self.faces) + len(self.voices) <= 1
        return tag if is_single and not tag.startswith("<character_") else self.tag


class CharacterRef(Frozen):
    """A character of a video of the library, by its number."""

    video: str
    number: NonNegativeInt


class KnownName(Frozen):
    """A name, its source (said, read, caption, model or person), and the clip it is known from."""

    name: str
    source: str
    from_clip: int


class MaybeSame(Frozen):
    """A character that was stated to be the same person, with too little support to join them."""

    number: int
    tags: tuple[str, str]
    reason: str


class LastSeen(OfVideo):
    """When a person was last seen, or heard where no face is known.

    Attributes:
        at: The time of day: of a file, when it was added.
        seen: Whether they were seen.
        keyframe: How the nearest keyframe of that clip is cited, such as ``k12``.
    """

    at: datetime
    seen: bool
    keyframe: str | None = None


InWords = Annotated[str, PlainSerializer(tags_in_words, return_type=str)]
"""A text with tags, which are words where it is sent."""


class PersonOfVideo(Frozen):
    """A person of a video, as users refer to them: by number, tag or name.

    Attributes:
        video: The video.
        title: Its title.
        number: Never changes.
        label: The preferred name, or a tag.
        names: All known names, the preferred one first.
        tags: Of the faces and voices.
        seen: Counts sightings.
        heard: Counts utterances.
        span: From the first to the last of them.
        maybe: Who was stated to be the same person, with too little support.
        last_seen: When they were last seen, or heard.
        seen_spans: When they are seen; short gaps are left out.
        heard_spans: When they are heard, in the same way.
        crops: The SHA-256 of the best crop of each face, by tag.
    """

    video: str
    title: str
    number: int
    label: InWords
    names: tuple[KnownName, ...] = ()
    tags: tuple[str, ...] = ()
    seen: int = 0
    heard: int = 0
    span: TimeSpan | None = None
    maybe: tuple[MaybeSame, ...] = ()
    last_seen: LastSeen | None = None
    seen_spans: tuple[TimeSpan, ...] = Field(default=(), exclude=True)
    heard_spans: tuple[TimeSpan, ...] = Field(default=(), exclude=True)
    crops: Mapping[str, str] = Field(default={}, exclude=True)

    @property
    def ref(self) -> CharacterRef:
        return CharacterRef(video=self.video, number=self.number)

    @property
    def crop(self) -> str | None:
        return next(iter(self.crops.values()), None)


class LibraryPerson(Frozen):
    """A person of the library: the characters that are joined, those last seen first."""

    label: InWords
    characters: tuple[PersonOfVideo, ...]
    last_seen: LastSeen | None = None


class LikelySame(Frozen, Generic[P]):
    """Two who may be one person.

    Attributes:
        one: The first: a person, or what stands for them.
        other: The second.
        kind: Whether their faces or voices are alike.
        cosine: Between the mean directions of those.
        sure: It is at least halfway between the model's threshold and 1, and nothing contradicts.
    """

    # A generic model has no description of its own.
    model_config = ConfigDict(json_schema_extra={"description": "Two who may be one person."})
    one: P
    other: P
    kind: IdentityKind
    cosine: float
    sure: bool = False


class Forgotten(Frozen):
    """What was forgotten of a person in a video.

    Attributes:
        video: The video.
        number: The person's number, which is not used again.
        rewritten: Counts texts that named them.
        images: Counts deleted images that showed them.
        answers: Counts deleted answers about the video.
        alerts: Counts removed alerts that named them.
        path: The video file's path where it contains their name; only the user can rename it.
        undo_file: What can restore them, if it was asked for.
    """

    video: str
    number: int
    rewritten: int
    images: int
    answers: int
    alerts: int = 0
    path: str | None = Field(default=None, exclude=True)
    undo_file: Path | None = Field(default=None, exclude=True)


class CorrectionKind(StrEnum):
    """What kind of correction a user made.

    The last three are about characters of different videos, and change nothing within a video.
    """

    RENAME = "rename"
    MERGE = "merge"
    SPLIT = "split"
    APART = "apart"
    JOIN = "join"
    LEAVE = "leave"
    DIFFER = "differ"


ACROSS_VIDEOS = frozenset({CorrectionKind.JOIN, CorrectionKind.LEAVE, CorrectionKind.DIFFER})
"""Corrections that say who is who in different videos."""


class CorrectedCharacter(Frozen):
    """The state of one character from a correction on.

    Attributes:
        number: The character.
        members: Tags of the faces and voices that are fixed to this character; others may join.
            After a split or apart, those that the character had then.
        names: Names given by the user, the preferred one first; empty: the learned names hold.
        nameless: Tags whose learned names are ignored.
        others: Tags of faces and voices that are not this character.
        persons: Ids that the character shares with characters of other videos: by a join with those
            that are the same person, after a leave no more; by a differ with one that is not.
    """

    number: NonNegativeInt
    members: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    nameless: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    persons: tuple[str, ...] = ()


class Correction(Frozen):
    """One correction; numbers count up within a video and are never reused.

    Attributes:
        number: Its number.
        kind: What was done.
        told: What was done, in words.
        numbers: The characters concerned; a later correction of any of them builds on this one.
        outcomes: The states of those characters from then on.
        undone: Whether it was taken back.
        act: Shared by the corrections of several videos that were made as one and are undone as
            one; None: it is of one video alone.
        video: The video that it is numbered in.
    """

    number: PositiveInt
    kind: CorrectionKind
    told: str
    numbers: tuple[NonNegativeInt, ...]
    outcomes: tuple[CorrectedCharacter, ...] = Field(exclude=True)
    undone: bool = False
    act: str | None = Field(default=None, exclude=True)
    video: str = ""
