"""Any patch that a writer may propose: most of it fits the graph as it is then, some of it not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from domain.memories import Relation
from memory.patches import WrittenEdge, WrittenPatch, WrittenSegment

LABELS = st.sampled_from(
    ["L1", "L2", "l3", "", "A", "one two three four five six seven eight nine"]
)
CLIPS = st.lists(st.integers(0, 45), max_size=6).map(tuple)

ODD_SEGMENTS = st.builds(
    WrittenSegment,
    label=LABELS.map(lambda text: text or " "),
    summary=st.sampled_from(["Something happens.", ""]),
    clips=CLIPS,
    extends=st.none() | LABELS,
)
"""Segments that hardly ever fit."""
ODD_EDGES = st.builds(
    WrittenEdge,
    source=LABELS,
    target=LABELS,
    relation=st.sampled_from([*Relation, "follows"]),
    confidence=st.floats(allow_nan=True),
    rationale=st.sampled_from(["So.", ""]),
    evidence=CLIPS,
    removed=st.booleans(),
)
"""Edges that hardly ever fit."""


@dataclass(frozen=True)
class Piece:
    """A segment to be: a stretch of clips, and which open segment it goes on with, if any."""

    label: int
    first: int
    length: int
    goes_on: int | None


@dataclass(frozen=True)
class Tie:
    """An edge to be, between two of the segments that there are then."""

    source: int
    target: int
    relation: str
    confidence: float
    removed: bool


@dataclass(frozen=True)
class Seed:
    """A patch to be: what it says is settled once the graph that it is for is known."""

    pieces: tuple[Piece, ...]
    ties: tuple[Tie, ...]
    odd_segments: tuple[WrittenSegment, ...]
    odd_edges: tuple[WrittenEdge, ...]

    def patch(
        self,
        at_clip: int,
        known: Mapping[str, Sequence[int]],
        edges: Sequence[tuple[str, str, str]] = (),
    ) -> WrittenPatch:
        """The patch for a graph with these open segments and edges."""
        drafts = [_segment(piece, at_clip, known) for piece in self.pieces]
        names = [*known, *(draft.label for draft in drafts)]
        ties = [_edge(tie, at_clip, names, edges) for tie in self.ties] if names else []
        return WrittenPatch(segments=(*drafts, *self.odd_segments), edges=(*ties, *self.odd_edges))


def _segment(piece: Piece, at_clip: int, known: Mapping[str, Sequence[int]]) -> WrittenSegment:
    first = piece.first % (at_clip + 1)
    clips = set(range(first, min(first + piece.length, at_clip + 1)))
    old = None
    if piece.goes_on is not None and known:
        old = list(known)[piece.goes_on % len(known)]
        clips |= set(known[old])
    return WrittenSegment(
        label=f"L{piece.label}", summary="They talk.", clips=tuple(sorted(clips)), extends=old
    )


def _edge(
    tie: Tie, at_clip: int, names: Sequence[str], edges: Sequence[tuple[str, str, str]]
) -> WrittenEdge:
    far = 1 + tie.target % max(1, len(names) - 1)
    ends = (names[tie.source % len(names)], names[(tie.source + far) % len(names)], tie.relation)
    source, target, relation = edges[tie.source % len(edges)] if tie.removed and edges else ends
    return WrittenEdge(
        source=source,
        target=target,
        relation=relation,
        confidence=tie.confidence,
        rationale="So.",
        evidence=(tie.target % (at_clip + 1),),
        removed=tie.removed,
    )


def _some(strategy: st.SearchStrategy[Any], most: int) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(strategy, max_size=most).map(tuple)


SEEDS = st.builds(
    Seed,
    pieces=_some(
        st.builds(
            Piece,
            label=st.integers(0, 12),
            first=st.integers(0, 45),
            length=st.integers(1, 12),
            goes_on=st.none() | st.integers(0, 5),
        ),
        5,
    ),
    ties=_some(
        st.builds(
            Tie,
            source=st.integers(0, 9),
            target=st.integers(0, 9),
            relation=st.sampled_from(["before", "causes", "contains"]),
            confidence=st.floats(0, 1),
            removed=st.booleans(),
        ),
        6,
    ),
    odd_segments=_some(ODD_SEGMENTS, 2),
    odd_edges=_some(ODD_EDGES, 2),
)
