"""EVENT: the segment that a query is about, with its neighbours and the edges between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from domain.asking import Evidence, Mode
from domain.events import Edge, Segment
from memory.retrieval.closeness import Yardstick, closeness, faded
from memory.retrieval.events import EventsInView, Found, word_scores
from memory.retrieval.field import Scores, standard
from memory.retrieval.index import Floats
from memory.retrieval.panorama import Part
from memory.retrieval.result import Retrieval
from memory.retrieval.sought import Sought, nothing_close

EdgesOf = Callable[[Segment], Sequence[Edge]]
"""The edges of a segment that hold in the view, both directions."""


@dataclass(frozen=True, eq=False)
class Ranked:
    """Segments in view with their scores (S,).

    ``cosines`` (S,) with the query and the share of its ``words`` (S,) tell how close they are;
    ``spread`` is the deviation of the scores of their best clips.
    """

    found: tuple[Found, ...]
    views: tuple[EventsInView, ...]
    scores: Scores
    cosines: Floats
    words: Floats
    spread: float

    def best(self) -> int:
        """Number of the best segment, the earlier of equals."""
        return int(np.argmax(self.scores))

    def close(self, place: int, yardstick: Yardstick) -> float:
        """How close a segment is to the query, in [0, 1]."""
        return closeness(yardstick.nearness(float(self.cosines[place])), float(self.words[place]))

    def place(self, segment: int) -> int | None:
        """Where the segment with this id is."""
        offset = 0
        for view in self.views:
            if segment in view.places:
                return view.places[segment] + offset
            offset += len(view.found)
        return None


def rank_segments(sought: Sought) -> Ranked:
    """Segments by label and summary (vector and words) and by the best of their clips."""
    views, found = sought.events, sought.segments
    if not found:
        nothing = np.zeros(0, dtype=np.float32)
        return Ranked((), (), np.zeros(0), nothing, nothing, 0.0)
    cosines = np.concatenate([_cosines(view, sought.vectors.question) for view in views])
    ranked = _scored(sought, cosines, word_scores(views, sought.asked.words))
    if not _blurred(sought):
        return ranked
    behind = (ranked.scores.max() - ranked.scores) * ranked.spread
    return _looked_into(sought, ranked, np.flatnonzero(behind <= _blurred(sought)).tolist())


def _scored(sought: Sought, cosines: Floats, words: Floats) -> Ranked:
    clips = _best_clips(sought)
    scores = standard(cosines) + standard(words) + standard(clips)
    spread = float(clips.std())
    return Ranked(sought.segments, sought.events, scores, cosines, words, spread)


def _blurred(sought: Sought) -> float:
    """How far the scores of two clips may be off that were not looked into; 0: not at all."""
    return 0.0 if sought.field is None else sought.field.margin


def _looked_into(sought: Sought, ranked: Ranked, places: Sequence[int]) -> Ranked:
    """The same with exact scores of the clips of these segments."""
    if sought.field is None or not sought.field.margin or not places:
        return ranked
    cells = [sought.cells_of(ranked.found[place].segment) for place in places]
    changed = sought.field.sharpen(np.concatenate(cells))
    return _scored(sought, ranked.cosines, ranked.words) if changed else ranked


def _cosines(view: EventsInView, query: Floats) -> Floats:
    """Of each segment with the query, (S,); zeros where another model embedded them."""
    if view.vectors.shape[1] != len(query):
        return np.zeros(len(view.found), dtype=np.float32)
    return np.asarray(np.vecdot(view.vectors, query), dtype=np.float32)


def _best_clips(sought: Sought) -> Scores:
    """The score of the best clip of each segment; the lowest of all where none is in view."""
    if sought.field is None:
        return np.zeros(len(sought.segments))
    scores = sought.field.cells
    low = float(scores.min())
    by_clip = {
        part.scope.video: _by_clip(part, scores[offset : offset + part.cells], low)
        for part, offset in sought.panorama.placed
    }
    return np.concatenate([view.best(by_clip[view.video], low) for view in sought.events])


def _by_clip(part: Part, scores: Scores, low: float) -> Scores:
    """Scores by clip number; ``low`` for clips without lines."""
    found = np.full(part.scope.last_clip + 1, low)
    found[part.index.clips[: part.cells]] = scores
    return found


def event(sought: Sought, edges_of: EdgesOf, neighbours: int) -> Retrieval:
    """The best segment and up to ``neighbours`` one-hop neighbours, ranked by the query."""
    ranked = rank_segments(sought)
    if not ranked.found:
        return Retrieval(
            mode=Mode.EVENT,
            query=sought.asked.text,
            nothing_close=True,
            searched=sought.searched("no event is woven yet; looked"),
        )
    return around(sought, ranked, ranked.best(), edges_of, neighbours, Mode.EVENT)


def around(
    sought: Sought, ranked: Ranked, focus: int, edges_of: EdgesOf, neighbours: int, mode: Mode
) -> Retrieval:
    """The focus and its neighbourhood as a retrieval; ``focus`` is a place in ``ranked``."""
    segment = ranked.found[focus].segment
    edges = [edge for edge in edges_of(segment) if _known(ranked, edge)]
    ranked = _looked_into(sought, ranked, _ranked_neighbours(ranked, segment, edges))
    near = _ranked_neighbours(ranked, segment, edges)[:neighbours]
    kept = {segment.id, *(ranked.found[place].id for place in near)}
    evidence = _evidence(sought, ranked, [focus, *near])
    return Retrieval(
        mode=mode,
        query=sought.asked.text,
        focus=segment,
        evidence=evidence,
        neighbours=tuple(ranked.found[place].segment for place in near),
        edges=tuple(edge for edge in edges if {edge.source, edge.target} <= kept),
        nothing_close=nothing_close(evidence, len(ranked.found)),
        searched=sought.searched(f"{len(ranked.found)} events"),
    )


def _known(ranked: Ranked, edge: Edge) -> bool:
    return ranked.place(edge.source) is not None and ranked.place(edge.target) is not None


def _ranked_neighbours(ranked: Ranked, focus: Segment, edges: Sequence[Edge]) -> list[int]:
    ids = {edge.source for edge in edges} | {edge.target for edge in edges}
    places = [ranked.place(one) for one in sorted(ids - {focus.id})]
    known = [place for place in places if place is not None]
    return sorted(known, key=lambda place: (-ranked.scores[place], place))


def _evidence(sought: Sought, ranked: Ranked, places: Sequence[int]) -> tuple[Evidence, ...]:
    """The focus first, then its neighbours; scores fall from the focus's closeness."""
    scores = [float(ranked.scores[place]) for place in places]
    falling = [min(scores[: i + 1]) for i in range(len(scores))]
    shown = faded(ranked.close(places[0], sought.yardstick), falling)
    return tuple(
        sought.segment_evidence(ranked.found[place].segment, score)
        for place, score in zip(places, shown, strict=True)
    )
