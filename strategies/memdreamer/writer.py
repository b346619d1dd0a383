"""The port of what writes MemDreamer's hierarchy, with what it is given and what it returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from domain.memories import Memory
from domain.time import TimeSpan
from memory.writers.port import WindowLine
from strategies.memdreamer.settings import Limits
from strategies.memdreamer.subgraph import Numbers, Subgraph
from strategies.memdreamer.supers import Run

Vector = NDArray[np.float32]


@dataclass(frozen=True)
class Window:
    """A window of the video that is to be cut, with its lines in order of time.

    With ``ended`` nothing follows it, so that its last episode is complete.
    """

    span: TimeSpan
    lines: tuple[Memory, ...]
    embedded: tuple[WindowLine, ...]
    ended: bool


@dataclass(frozen=True)
class Episode:
    """A complete episode of a window: what is to be a macro event, with its lines."""

    span: TimeSpan
    label: str
    summary: str
    lines: tuple[Memory, ...] = ()


@dataclass(frozen=True, eq=False)
class Macro:
    """A macro event."""

    number: int
    label: str
    summary: str
    span: TimeSpan
    clip: int
    vector: Vector


@dataclass(frozen=True)
class SuperEvent:
    """A super event: the macro events of ``run``, with its label and description.

    ``inner`` are edges between its macro events, ``outer`` from it to other super events, each
    (from, label, to) with its reason; super events go by their first macro event here.
    """

    run: Run
    label: str
    text: str
    inner: Mapping[tuple[int, str, int], str]
    outer: Mapping[tuple[int, str, int], str]


@dataclass(frozen=True)
class SuperWindow:
    """What super events are to be made of.

    Attributes:
        before: the super event before those that are touched, if there is one.
        touched: those that are formed anew.
        macros: the macro events of those that are touched, with the new ones last.
        runs: how they are joined by rules.
        sizes: the least and the most macro events of a super event.
    """

    before: SuperEvent | None
    touched: Sequence[SuperEvent]
    macros: Sequence[Macro]
    runs: Sequence[Run]
    sizes: Limits


@dataclass(frozen=True)
class Root:
    """What the whole video is about so far; ``text`` is as it is stored."""

    title: str
    text: str


class HierarchyWriter(Protocol):
    """Writes the hierarchy."""

    def episodes(self, window: Window) -> list[Episode]:
        """Return the complete episodes of a window: in order, without gaps, from its start."""

    def graph(
        self, episode: Episode, numbers: Numbers, types: dict[str, str], people: Sequence[str]
    ) -> Subgraph:
        """Return the graph of an episode; not all of it has to be sound."""

    def supers(self, window: SuperWindow) -> list[SuperEvent]:
        """Return super events that are a partition of the window's macro events."""

    def joined(self, pair: Sequence[SuperEvent], macros: Sequence[Macro]) -> SuperEvent:
        """Return one super event in place of two neighbours, of all their macro events."""

    def root(self, title: str, supers: Sequence[SuperEvent]) -> Root:
        """Return what the whole video is about."""
