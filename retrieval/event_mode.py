"""EVENT: the segment that a query is about, with its neighbours and the edges between."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from domain.asking import Evidence, Mode
from domain.errors import InputError
from domain.memories import Edge, Segment
from retrieval.closeness import Yardstick, closeness, faded
from retrieval.coarse import best_of
from retrieval.event_search import SegmentInView
from retrieval.query_context import QueryContext, nothing_close
from retrieval.relevance import Scores, SignalScale, level, standard
from retrieval.result import Retrieval, UnknownLabel
from retrieval.segment_index import SegmentIndex
from retrieval.video_index import Floats, Ints

SEEMING = 4
"""So many of the events that seem best are looked into first."""

EdgesOf = Callable[[Segment], Sequence[Edge]]
"""The edges of a segment that hold in the view, both directions."""


@dataclass(frozen=True, eq=False)
class RankedSegments:
    """Segments in view with their scores (S,).

    ``cosines`` (S,) with the query and the share of its ``words`` (S,) tell how close they are.
    ``clips`` (S,) are the scores of their best clips. ``margin`` is how far scores that were not
    looked into may be off; 0: all are exact.
    """

    woven: SegmentIndex
    scores: Scores
    cosines: Floats
    words: Floats
    clips: Scores
    by_cosine: SignalScale
    by_clip: SignalScale
    margin: float

    def of_vectors(self, places: Ints) -> Scores:
        """What cosines add to the scores of some, their own and those of their clips."""
        cosines, clips = self.cosines[places], self.clips[places]
        return self.by_cosine.of(cosines) + self.by_clip.of(clips)

    @property
    def found(self) -> tuple[SegmentInView, ...]:
        """The segments."""
        return self.woven.found

    def best(self) -> int:
        """Number of the best segment, the earlier of equals."""
        return int(np.argmax(self.scores))

    def close(self, place: int, yardstick: Yardstick) -> float:
        """How close a segment is to the query, in [0, 1]."""
        return closeness(yardstick.nearness(float(self.cosines[place])), float(self.words[place]))

    def place(self, segment: int) -> int | None:
        """Where the segment with this id is."""
        return self.woven.places.get(segment)


def rank_segments(sought: QueryContext) -> RankedSegments:
    """Segments by label and summary (vector and words) and by the best of their clips."""
    woven, field = sought.woven, sought.field
    cosines, off = woven.cosines(sought.vectors.question)
    words = woven.words(sought.asked.words)
    clips = np.zeros(len(cosines)) if field is None else woven.best(field.cells)
    by_cosine, by_clip = level(cosines), level(clips)
    blurred = 0.0 if field is None else field.off
    ranked = RankedSegments(
        woven=woven,
        scores=by_cosine.of(cosines) + standard(words) + by_clip.of(clips),
        cosines=cosines,
        words=words,
        clips=clips,
        by_cosine=by_cosine,
        by_clip=by_clip,
        margin=math.hypot(off * by_cosine.weight, blurred * by_clip.weight),
    )
    if ranked.margin:
        # One that is certainly behind the best of those that seem so cannot be the best.
        seeming = best_of(ranked.scores, SEEMING)
        _look_into(sought, ranked, seeming)
        close = ranked.scores >= ranked.scores[seeming].max() - ranked.margin
        close[seeming] = False
        _look_into(sought, ranked, np.flatnonzero(close))
    return ranked


def _look_into(sought: QueryContext, ranked: RankedSegments, places: Ints) -> None:
    """Make the scores of these segments exact."""
    if not ranked.margin or not len(places):
        return
    ranked.scores[places] -= ranked.of_vectors(places)
    ranked.cosines[places] = ranked.woven.exact_cosines(places, sought.vectors.question)
    if sought.field is not None:
        cells = [ranked.woven.cells_of(place) for place in places]
        sought.field.sharpen(np.concatenate(cells))
        for place, own in zip(places, cells, strict=True):
            if len(own):
                ranked.clips[place] = sought.field.cells[own].max()
    ranked.scores[places] += ranked.of_vectors(places)


def event(sought: QueryContext, edges_of: EdgesOf, neighbours: int) -> Retrieval:
    """The best segment and up to ``neighbours`` one-hop neighbours, ranked by the query."""
    ranked = rank_segments(sought)
    if not ranked.found:
        return Retrieval(
            mode=Mode.EVENT,
            query=sought.query,
            nothing_close=True,
            searched=sought.searched("no event is woven yet; looked"),
        )
    return around(sought, ranked, ranked.best(), edges_of, neighbours, Mode.EVENT)


def around(
    sought: QueryContext,
    ranked: RankedSegments,
    focus: int,
    edges_of: EdgesOf,
    neighbours: int,
    mode: Mode,
) -> Retrieval:
    """The focus and its neighbourhood as a retrieval; ``focus`` is a place in ``ranked``."""
    segment = ranked.found[focus].segment
    edges = [edge for edge in edges_of(segment) if _known(ranked, edge)]
    beside = np.array(_ranked_neighbours(ranked, segment, edges), dtype=np.int64)
    _look_into(sought, ranked, beside)
    near = _ranked_neighbours(ranked, segment, edges)[:neighbours]
    kept = {segment.id, *(ranked.found[place].id for place in near)}
    evidence = _evidence(sought, ranked, [focus, *near])
    return Retrieval(
        mode=mode,
        query=sought.query,
        focus=segment,
        evidence=evidence,
        neighbours=tuple(ranked.found[place].segment for place in near),
        edges=tuple(edge for edge in edges if {edge.source, edge.target} <= kept),
        nothing_close=nothing_close(evidence, len(ranked.found)),
        searched=sought.searched(f"{len(ranked.found)} events"),
    )


def _known(ranked: RankedSegments, edge: Edge) -> bool:
    return ranked.place(edge.source) is not None and ranked.place(edge.target) is not None


def _ranked_neighbours(ranked: RankedSegments, focus: Segment, edges: Sequence[Edge]) -> list[int]:
    ids = {edge.source for edge in edges} | {edge.target for edge in edges}
    places = [ranked.place(one) for one in sorted(ids - {focus.id})]
    known = [place for place in places if place is not None]
    return sorted(known, key=lambda place: (-ranked.scores[place], place))


def _evidence(
    sought: QueryContext, ranked: RankedSegments, places: Sequence[int]
) -> tuple[Evidence, ...]:
    """The focus first, then its neighbours; scores fall from the focus's closeness."""
    scores = [float(ranked.scores[place]) for place in places]
    falling = [min(scores[: i + 1]) for i in range(len(scores))]
    shown = faded(ranked.close(places[0], sought.yardstick), falling)
    return tuple(
        sought.segment_evidence(ranked.found[place].segment, score)
        for place, score in zip(places, shown, strict=True)
    )


def neighbor(
    sought: QueryContext, focus: int | None, edges_of: EdgesOf, neighbours: int
) -> Retrieval:
    """Move to the neighbour of ``focus`` whose label the query is; case and spaces do not count.

    Raises:
        InputError: there is no focus yet, or it is not in view.
        UnknownLabel: no neighbour has that label.
    """
    ranked = rank_segments(sought)
    here = None if focus is None else ranked.place(focus)
    if here is None:
        raise InputError("NEIGHBOR moves from a segment: search EVENT first")
    place = _labelled(sought, ranked, here, edges_of)
    return around(sought, ranked, place, edges_of, neighbours, Mode.NEIGHBOR)


def _labelled(sought: QueryContext, ranked: RankedSegments, here: int, edges_of: EdgesOf) -> int:
    segment = ranked.found[here].segment
    edges = edges_of(segment)
    ids = sorted({e.source for e in edges} | {e.target for e in edges} - {segment.id})
    places = [place for i in ids if i != segment.id and (place := ranked.place(i)) is not None]
    wanted = _plain(sought.query)
    found = [p for p in places if _plain(ranked.found[p].label) == wanted]
    if not found:
        labels = tuple(ranked.found[place].label for place in places)
        raise UnknownLabel(sought.query, labels)
    return found[0]


def _plain(label: str) -> str:
    return " ".join(label.casefold().strip(" \"'.").split())
