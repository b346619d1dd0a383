"""What a strategy builds of a video: nodes, entities and relations, as drafts and as stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from domain.memories import Memory
from domain.time import TimeSpan

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
