"""What is built of a video: nodes, entities and relations, as drafts and as stored; and recaps.

A recap is a document that sums up a day or an hour of a video, with citations.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

from domain.base import Frozen
from domain.errors import InputError
from domain.memories import Memory
from domain.time import OfVideo, TimeSpan
from domain.words import WORD_JOINER

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]


RULES = "rules"
"""The writer of what was built without a language model."""


class EntityKey(NamedTuple):
    """What names an entity of a video: its type, such as PERSON, and its name or tag."""

    type: str
    name: str


def entity_text(key: EntityKey, attributes: Mapping[str, Any]) -> str:
    """Return an entity in words: its name, its type, and those of its attributes that are texts."""
    known = "; ".join(
        f"{name}: {text}"
        for name, text in attributes.items()
        if (isinstance(text, str) and bool(text))
    )
    named = f"{key.name} ({key.type.lower()})"
    return f"{named}: {known}" if known else named


@dataclass(frozen=True)
class WatchedClip:
    """A clip that was watched, with its lines and the strategy's kept frames in order of time."""

    clip: int
    span: TimeSpan
    lines: tuple[Memory, ...]
    frames: tuple[BuiltFrame, ...] = ()


@dataclass(frozen=True, eq=False)
class Node:
    """A node as it is from ``from_clip`` on; ``children`` are numbers of nodes of a finer level.

    ``to_clip``: after that clip it is so no longer; None: it still is. ``id``: the row that all
    revisions of it share; 0: it is not stored.
    """

    level: str
    number: int
    text: str
    span: TimeSpan
    from_clip: int
    label: str = ""
    children: tuple[int, ...] = ()
    vector: Vector | None = None
    to_clip: int | None = None
    id: int = 0
    builder: str = ""

    @property
    def ref(self) -> str:
        return f"n{self.id}"


@dataclass(frozen=True, eq=False)
class Entity:
    """An entity that is first named in ``from_clip``; ``id`` is its row's, 0: it is not stored."""

    key: EntityKey
    from_clip: int
    attributes: dict[str, Any] = field(default_factory=dict)
    vector: Vector | None = None
    id: int = 0


RelationKey = tuple[str, EntityKey, str, EntityKey]
"""What names a relation that holds: level, subject, predicate, object."""


@dataclass(frozen=True, eq=False)
class Relation:
    """A relation that holds from ``from_clip`` on. ``node``: level and number of what states it.

    ``to_clip``: after that clip it holds no longer; None: it still does. ``id`` is its row's, 0: it
    is not stored.
    """

    level: str
    subject: EntityKey
    predicate: str
    object: EntityKey
    span: TimeSpan
    from_clip: int
    evidence: tuple[int, ...] = ()
    node: tuple[str, int] | None = None
    confidence: float = 1.0
    vector: Vector | None = None
    to_clip: int | None = None
    id: int = 0

    @property
    def key(self) -> RelationKey:
        """What names it as long as it holds."""
        return self.level, self.subject, self.predicate, self.object

    @property
    def text(self) -> str:
        """It as a sentence, as it is embedded and shown."""
        return f"{self.subject.name} {self.predicate} {self.object.name}"


class ClosedNode(NamedTuple):
    """A node that is no more after ``clip``."""

    level: str
    number: int
    clip: int


@dataclass(frozen=True)
class Change:
    """What one step of a build adds and closes, in one transaction.

    ``closed`` are relations of earlier steps, each with the clip after which it holds no longer.
    """

    nodes: Sequence[Node] = ()
    entities: Sequence[Entity] = ()
    relations: Sequence[Relation] = ()
    closed: Sequence[Relation] = ()
    closed_nodes: Sequence[ClosedNode] = ()


@dataclass(frozen=True)
class BuiltMemory:
    """All that a builder built of a video; ``through_clip`` is -1 before its first step.

    ``encoder`` is the text encoder that made the vectors, "" before the first step.
    """

    through_clip: int = -1
    version: int = 0
    encoder: str = ""
    nodes: tuple[Node, ...] = ()
    entities: tuple[Entity, ...] = ()
    relations: tuple[Relation, ...] = ()


class OutlineLevel(NamedTuple):
    """A level of nodes that an outline has; ``noun`` is what one of them is called.

    ``titled``: its nodes have a title and a description; else the text of one is its title.
    """

    level: str
    noun: str
    titled: bool = True


@dataclass(frozen=True, eq=False)
class FrameDraft:
    """A frame that is kept: ``blob`` is the SHA-256 of its JPEG.

    ``reason`` says why it is kept, ``tier`` how far it was shrunk; ``image_encoder`` made
    ``vector``, if there is one.
    """

    time_ms: int
    blob: str
    width: int
    height: int
    tier: int
    reason: str
    vector: Vector | None = None
    image_encoder: str | None = None


@dataclass(frozen=True)
class NewImage:
    """The image that a kept frame has from now on: ``blob`` is the SHA-256 of its JPEG."""

    blob: str
    width: int
    height: int


@dataclass(frozen=True)
class ChangedFrame:
    """What changes of a frame of an earlier clip; None: that stays as it is.

    ``before`` is the SHA-256 of the JPEG that it had when this was decided.
    """

    time_ms: int
    before: str
    reason: str | None = None
    tier: int | None = None
    image: NewImage | None = None


@dataclass(frozen=True, eq=False)
class KeptClip:
    """What a keeper of frames made of a clip, with the JPEGs by their SHA-256.

    ``dropped`` are the times of frames that it keeps no longer, ``changed`` are frames of earlier
    clips, ``state`` is what it carries on.
    """

    builder: str
    version: int
    clip: int
    frames: Sequence[FrameDraft]
    dropped: Sequence[int]
    changed: Sequence[ChangedFrame]
    state: Mapping[str, Any]
    jpegs: Mapping[str, bytes]


class Carried(NamedTuple):
    """What a keeper carried on after a clip, with the version of it that did."""

    version: int
    through_clip: int
    state: dict[str, Any]


class BuiltFrame(NamedTuple):
    """A kept frame as it is stored."""

    id: int
    builder: str
    clip: int
    time_ms: int
    blob: str
    tier: int
    reason: str


PeriodKind = Literal["day", "hour"]
_LENGTH = {"day": timedelta(days=1), "hour": timedelta(hours=1)}
_FORMATS = {"day": "%Y-%m-%d", "hour": "%Y-%m-%dT%H"}

_MOMENT = r"(?:d\d+ )?[\d:]+"
_CITATION = re.compile(rf"(?<!\\)\[({_MOMENT})-({_MOMENT}), s(\d+)\]")
_ESCAPED = re.compile(r"\\([^0-9A-Za-z\s])")
_LEADING_ZERO = re.compile(r"(?<![:\d])0(\d:)")


class Period(Frozen):
    """A day or an hour by this machine's clock; ``start`` has the time zone."""

    kind: PeriodKind
    start: datetime

    @classmethod
    def at(cls, kind: PeriodKind, moment: datetime) -> Self:
        local = moment.astimezone()
        hour = 0 if kind == "day" else local.hour
        start = local.replace(hour=hour, minute=0, second=0, microsecond=0, tzinfo=None)
        return cls(kind=kind, start=start.astimezone())

    @property
    def end(self) -> datetime:
        """When it ends; a day of a change of the clocks has 23 or 25 hours."""
        if self.kind == "hour":
            return self.start + _LENGTH["hour"]
        return (self.start.replace(tzinfo=None) + _LENGTH["day"]).astimezone()

    @property
    def before(self) -> Period:
        return type(self).at(self.kind, self.start - timedelta(minutes=1))

    @property
    def name(self) -> str:
        """Its name: ``2026-11-25`` or ``2026-11-25T14``."""
        return self.start.strftime(_FORMATS[self.kind])

    @property
    def number(self) -> int:
        """Its number, counted from 1970 in hours; an hour and a day may have the same."""
        return int(self.start.timestamp() // 3600)


class Recap(OfVideo):
    """A recap of one video: the kind and name of its period, its span of video time, and its text.

    ``text`` is Markdown, without a heading.
    """

    kind: PeriodKind
    period: str
    text: str


def parse_period(kind: PeriodKind, text: str, now: datetime) -> Period:
    """Parse ``today``, ``yesterday``, ``now``, ``last``, a date, or a date with an hour.

    Raises:
        InputError: it is none of these.
    """
    current = Period.at(kind, now)
    named = {"today": current, "now": current, "yesterday": current.before, "last": current.before}
    if text in named:
        return named[text]
    try:
        return Period.at(kind, datetime.strptime(text, _FORMATS[kind]).astimezone())
    except (ValueError, OverflowError) as error:
        example = now.strftime(_FORMATS[kind])
        raise InputError(f"{text!r} is no {kind}: write it as {example}, or 'last'") from error


def linked_citations(text: str, video: str, app: str = "") -> str:
    """Return a recap in Markdown whose citations lead to the events on the video's page.

    Args:
        text: the recap as it is stored.
        app: the app's address; "": the link is for a page of the app itself.
    """
    page = f"{app}/video?video={video}"
    return _CITATION.sub(lambda found: f"[{_times(found)}]({page}&segment={found[3]})", text)


def cited_times(text: str) -> str:
    """Return a recap for a terminal: citations are times alone, and Markdown is not escaped."""
    shown = _ESCAPED.sub(r"\1", _CITATION.sub(lambda found: f"[{_times(found)}]", text))
    return shown.replace(WORD_JOINER, "")


def _times(found: re.Match[str]) -> str:
    return _LEADING_ZERO.sub(r"\1", f"{found[1]}-{found[2]}")
