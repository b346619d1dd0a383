"""EVENT: the segment that a query is about, with its neighbours and the edges between."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np

from domain.asking import Evidence, Mode
from domain.errors import InputError
from domain.memories import Edge, Segment
from retrieval.closeness import closeness, faded
from retrieval.line_set import Floats, Ints, Scores
from retrieval.query_context import QueryContext, nothing_close
from retrieval.relevance import standard
from retrieval.result import Retrieval, UnknownLabel
from retrieval.terms import terms
from store.queries.segments_in_view import SegmentNear

READ = 200
"""Segments whose labels and summaries are read: the nearest, and those with the best clips."""

EdgesOf = Callable[[Segment], Sequence[Edge]]
"""The edges of a segment that hold in the view, both directions."""
ReadSegments = Callable[[Sequence[int]], Mapping[int, Segment]]
"""Reads segments by id as the view shows them."""


@dataclass(frozen=True, eq=False)
class RankedSegments:
    """The S segments in view with their scores (S,).

    ``cosines`` (S,) with the query and the share of its ``words`` (S,) tell how close they are.
    """

    near: tuple[SegmentNear, ...]
    scores: Scores
    cosines: Floats
    words: Floats
    read: ReadSegments

    @cached_property
    def places(self) -> dict[int, int]:
        """Where each segment is, by id."""
        return {one.id: place for place, one in enumerate(self.near)}

    def segment(self, place: int) -> Segment:
        """Return a segment as the view shows it."""
        return self.read([self.near[place].id])[self.near[place].id]

    def best(self) -> int | None:
        """Return the place of the best segment, the earlier of equals; None without any."""
        return int(np.argmax(self.scores)) if len(self.near) else None


def rank_segments(
    context: QueryContext, near: Sequence[SegmentNear], read: ReadSegments
) -> RankedSegments:
    """Rank segments by label and summary (vector and words) and by the best of their clips."""
    cosines = np.array([one.cosine for one in near], dtype=np.float32)
    clips = _best_clips(context, near)
    words = np.zeros(len(near), dtype=np.float32)
    looked = _looked_into(cosines, clips)
    texts = read([near[place].id for place in looked.tolist()])
    rarity = {word: context.found.hits.rarity(word) for word in sorted(context.words)}
    total = sum(rarity.values()) or 1.0
    for place in looked.tolist():
        one = texts[near[place].id]
        own = set(terms(f"{one.label} {one.summary}"))
        words[place] = sum(rarity[word] for word in rarity if word in own) / total
    scores = standard(cosines) + standard(words) + standard(clips)
    return RankedSegments(tuple(near), scores, cosines, words, read)


def _looked_into(cosines: Floats, clips: Scores) -> Ints:
    """The segments that may be the best: the nearest, and those with the best clips."""
    if len(cosines) <= READ:
        return np.arange(len(cosines))
    nearest = [np.argsort(-some, kind="stable")[: READ // 2] for some in (cosines, clips)]
    return np.unique(np.concatenate(nearest))


def _best_clips(context: QueryContext, near: Sequence[SegmentNear]) -> Scores:
    """The best score of each segment's clips, (S,); the lowest of all where none is known."""
    if context.relevance is None or not near:
        return np.zeros(len(near))
    cells, hits = context.relevance.cells, context.found.hits
    lowest = float(cells.min())
    places = np.full(hits.size + 1, lowest)
    places[context.found.places] = cells
    counts = np.array([len(one.clips) for one in near])
    clips = np.fromiter(chain.from_iterable(one.clips for one in near), np.int64)
    videos = np.repeat(np.array([one.video for one in near]), counts)
    own = places[hits.places(videos, clips)]
    best, held = np.full(len(near), lowest), counts > 0
    if held.any():
        best[held] = np.maximum.reduceat(own, (np.cumsum(counts) - counts)[held])
    return best


def event(
    context: QueryContext, ranked: RankedSegments, edges_of: EdgesOf, neighbours: int
) -> Retrieval:
    """Return the best segment and up to ``neighbours`` one-hop neighbours, ranked by the query."""
    best = ranked.best()
    if best is None:
        return Retrieval(
            mode=Mode.EVENT,
            query=context.query,
            nothing_close=True,
            searched=context.searched("no event is woven yet; looked"),
        )
    return _around(context, ranked, best, edges_of, neighbours, Mode.EVENT)


def _around(
    context: QueryContext,
    ranked: RankedSegments,
    focus: int,
    edges_of: EdgesOf,
    neighbours: int,
    mode: Mode,
) -> Retrieval:
    """The focus and its neighbourhood as a retrieval; ``focus`` is a place in ``ranked``."""
    segment = ranked.segment(focus)
    edges = [e for e in edges_of(segment) if {e.source, e.target} <= ranked.places.keys()]
    near = _ranked_neighbours(ranked, segment, edges)[:neighbours]
    kept = {segment.id, *(ranked.near[place].id for place in near)}
    evidence = _evidence(context, ranked, [focus, *near])
    return Retrieval(
        mode=mode,
        query=context.query,
        focus=segment,
        evidence=evidence,
        neighbours=tuple(ranked.segment(place) for place in near),
        edges=tuple(edge for edge in edges if {edge.source, edge.target} <= kept),
        nothing_close=nothing_close(evidence, len(ranked.near)),
        searched=context.searched(f"{len(ranked.near)} events"),
    )


def _ranked_neighbours(ranked: RankedSegments, focus: Segment, edges: Sequence[Edge]) -> list[int]:
    ids = {edge.source for edge in edges} | {edge.target for edge in edges}
    places = [ranked.places[one] for one in sorted(ids - {focus.id})]
    return sorted(places, key=lambda place: (-ranked.scores[place], place))


def _evidence(
    context: QueryContext, ranked: RankedSegments, places: Sequence[int]
) -> tuple[Evidence, ...]:
    """The focus first, then its neighbours; scores fall from the focus's closeness."""
    scores = [float(ranked.scores[place]) for place in places]
    falling = [min(scores[: i + 1]) for i in range(len(scores))]
    nearness = context.cosine_scale.nearness(float(ranked.cosines[places[0]]))
    shown = faded(closeness(nearness, float(ranked.words[places[0]])), falling)
    return tuple(
        context.segment_evidence(ranked.segment(place), score)
        for place, score in zip(places, shown, strict=True)
    )


def neighbor(
    context: QueryContext,
    ranked: RankedSegments,
    focus: int | None,
    edges_of: EdgesOf,
    neighbours: int,
) -> Retrieval:
    """Move to the neighbour of ``focus`` whose label the query is; case and spaces do not count.

    Raises:
        InputError: there is no focus yet, or it is not in view.
        UnknownLabel: no neighbour has that label.
    """
    here = None if focus is None else ranked.places.get(focus)
    if here is None:
        raise InputError("NEIGHBOR moves from a segment: search EVENT first")
    place = _labelled(context, ranked, here, edges_of)
    return _around(context, ranked, place, edges_of, neighbours, Mode.NEIGHBOR)


def _labelled(context: QueryContext, ranked: RankedSegments, here: int, edges_of: EdgesOf) -> int:
    segment = ranked.segment(here)
    edges = edges_of(segment)
    ids = sorted({e.source for e in edges} | {e.target for e in edges} - {segment.id})
    places = [ranked.places[i] for i in ids if i != segment.id and i in ranked.places]
    labels = tuple(ranked.segment(place).label for place in places)
    wanted = _plain(context.query)
    for place, label in zip(places, labels, strict=True):
        if _plain(label) == wanted:
            return place
    raise UnknownLabel(context.query, labels)


def _plain(label: str) -> str:
    return " ".join(label.casefold().strip(" \"'.").split())
