"""EVENT and NEIGHBOR: a segment of the event graph with its neighbours and edges (section 2)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from domain.asking import Mode
from domain.errors import InputError
from domain.memories import Edge, Segment
from domain.moments import Retrieval, UnknownLabel
from domain.settings import AskSettings
from retrieval.lines import Floats, Ints, Scores
from retrieval.people_in_query import ViewPerson
from retrieval.query_context import QueryContext, nothing_close
from retrieval.ranking import RankedLine, line_scores
from retrieval.relevance import closeness, decayed, standardise
from retrieval.terms import terms
from store.database import Store
from store.queries.outline import segments_of_clip
from store.queries.search import SegmentArrays, read_segments

READ = 200
"""Maximum number of segments whose text is read: the nearest, and those with the best clips."""

EdgesOf = Callable[[Segment], Sequence[Edge]]
"""Returns the edges of a segment that are valid in the view, in both directions."""
ReadSegments = Callable[[Sequence[int]], Mapping[int, Segment]]
"""Reads segments by id as the view shows them."""


ReadTexts = Callable[[Sequence[int]], Mapping[int, str]]
"""Reads label and summary of segments by id."""


@dataclass(frozen=True, eq=False)
class RankedSegments:
    """The S segments in view with their scores (S,).

    ``words`` (S,) is the IDF-weighted share of the query's words in [0, 1]. ``read`` fetches
    segments.
    """

    near: SegmentArrays
    scores: Scores
    words: Floats
    read: ReadSegments

    @cached_property
    def places(self) -> dict[int, int]:
        """The position of each segment in ``near``, by id."""
        return {segment: place for place, segment in enumerate(self.near.id.tolist())}

    def segments(self, places: Sequence[int]) -> list[Segment]:
        ids = self.near.id[list(places)].tolist()
        segments = self.read(ids)
        return [segments[segment] for segment in ids]

    def best(self) -> int | None:
        """Return the place of the best segment, the earlier of equals; None without any."""
        return int(np.argmax(self.scores)) if len(self.scores) else None


def rank_segments(
    context: QueryContext, near: SegmentArrays, texts: ReadTexts, read: ReadSegments
) -> RankedSegments:
    """Rank segments by the sum of three standardised scores: vector, words, and best clip."""
    if context.relevance is None or not len(near.id):
        clips = np.zeros(len(near.id))
    else:
        cells, hits = context.relevance.cells, context.candidates.hits
        lowest = float(cells.min())
        places = np.full(hits.size + 1, lowest)
        places[context.candidates.places] = cells
        clip_scores = places[hits.places(np.repeat(near.video, near.counts), near.clips)]
        best, has_clips = np.full(len(near.id), lowest), near.counts > 0
        if has_clips.any():
            first = np.cumsum(near.counts) - near.counts
            best[has_clips] = np.maximum.reduceat(clip_scores, first[has_clips])
        clips = best
    words = np.zeros(len(near.id), dtype=np.float32)
    if len(near.cosine) <= READ:
        selected = np.arange(len(near.cosine))
    else:
        nearest = [
            np.argsort(-scores, kind="stable")[: READ // 2] for scores in (near.cosine, clips)
        ]
        selected = np.unique(np.concatenate(nearest))
    ids = near.id[selected].tolist()
    text_of = texts(ids)
    idf = {
        word: context.candidates.hits.inverse_document_frequency(word)
        for word in sorted(context.words)
    }
    total = sum(idf.values()) or 1.0
    for place, segment in zip(selected.tolist(), ids, strict=True):
        segment_words = set(terms(text_of[segment], english=False))
        words[place] = sum(idf[word] for word in idf if word in segment_words) / total
    scores = standardise(near.cosine) + standardise(words) + standardise(clips)
    return RankedSegments(near, scores, words, read)


def event(
    context: QueryContext, ranked: RankedSegments, edges_of: EdgesOf, neighbours: int
) -> Retrieval:
    """Return the best segment and up to ``neighbours`` one-hop neighbours, ranked by the query."""
    best = ranked.best()
    if best is None:
        none = "there are no events yet" if context.share == 1 else "no event is in these videos"
        return Retrieval(
            mode=Mode.EVENT,
            query=context.query,
            nothing_close=True,
            searched=context.searched(f"{none}; searched"),
        )
    return _neighbourhood(context, ranked, best, edges_of, neighbours, Mode.EVENT)


def _neighbourhood(
    context: QueryContext,
    ranked: RankedSegments,
    focus: int,
    edges_of: EdgesOf,
    neighbours: int,
    mode: Mode,
) -> Retrieval:
    """Return a segment with its neighbours and edges; ``focus`` is a position in ``ranked``."""
    (segment,) = ranked.segments([focus])
    edges = [e for e in edges_of(segment) if {e.source, e.target} <= ranked.places.keys()]
    ids = {edge.source for edge in edges} | {edge.target for edge in edges}
    places = [ranked.places[neighbour] for neighbour in sorted(ids - {segment.id})]
    near = sorted(places, key=lambda place: (-ranked.scores[place], place))[:neighbours]
    neighbours_shown = ranked.segments(near)
    shown = {segment.id, *(neighbour.id for neighbour in neighbours_shown)}
    # The focus and its neighbours are evidence with falling scores.
    scores = [float(ranked.scores[place]) for place in (focus, *near)]
    falling = [min(scores[: i + 1]) for i in range(len(scores))]
    nearness = context.cosine_scale.nearness(float(ranked.near.cosine[focus]))
    decaying = decayed(closeness(nearness, float(ranked.words[focus])), falling)
    evidence = tuple(
        context.segment_evidence(one, score)
        for one, score in zip([segment, *neighbours_shown], decaying, strict=True)
    )
    return Retrieval(
        mode=mode,
        query=context.query,
        focus=segment,
        evidence=evidence,
        neighbours=tuple(neighbours_shown),
        edges=tuple(edge for edge in edges if {edge.source, edge.target} <= shown),
        nothing_close=nothing_close(evidence, int(len(ranked.near.id) / context.share)),
        searched=context.searched(f"{len(ranked.near.id)} events"),
    )


def with_edges_of(
    store: Store,
    context: QueryContext,
    result: Retrieval,
    line: int,
    edges_of: EdgesOf,
    neighbours: int,
) -> Retrieval:
    """Add neighbours and edges of the events that a line is of, which need not be in focus."""
    video, row = context.lines.line(line)
    scope, focus = context.scope(video), result.focus.id if result.focus else 0
    with store.begin() as session:
        own = segments_of_clip(session, video, scope.last_clip, row.clip)
    edges = [
        edge
        for one in own
        if one.id != focus
        for edge in sorted(edges_of(one), key=lambda edge: -edge.confidence)[:neighbours]
    ]
    known = {*(one.id for one in own), *(one.id for one in result.neighbours)}
    ids = {end for edge in edges for end in (edge.source, edge.target)} - known
    others = store.run_read_only(partial(read_segments, scopes=[scope], ids=ids)).values()
    more = {"neighbours": (*result.neighbours, *others), "edges": (*result.edges, *edges)}
    return result.model_copy(update=more)


def neighbor(
    context: QueryContext,
    ranked: RankedSegments,
    focus: int | None,
    edges_of: EdgesOf,
    neighbours: int,
) -> Retrieval:
    """Move to the neighbour of ``focus`` whose label the query is; case and spaces do not count.

    Raises:
        InputError: There is no focus yet, or it is not in view.
        UnknownLabel: No neighbour has that label.
    """
    focus_place = None if focus is None else ranked.places.get(focus)
    if focus_place is None:
        raise InputError("NEIGHBOR moves from a segment: search EVENT first")
    place = _labelled(context, ranked, focus_place, edges_of)
    return _neighbourhood(context, ranked, place, edges_of, neighbours, Mode.NEIGHBOR)


def _labelled(
    context: QueryContext, ranked: RankedSegments, focus_place: int, edges_of: EdgesOf
) -> int:
    (segment,) = ranked.segments([focus_place])
    edges = edges_of(segment)
    ids = sorted({e.source for e in edges} | {e.target for e in edges} - {segment.id})
    places = [ranked.places[i] for i in ids if i != segment.id and i in ranked.places]
    labels = tuple(neighbour.label for neighbour in ranked.segments(places))
    wanted = _normalised(context.query)
    for place, label in zip(places, labels, strict=True):
        if _normalised(label) == wanted:
            return place
    raise UnknownLabel(context.query, labels)


def _normalised(label: str) -> str:
    return " ".join(label.casefold().strip(" \"'.").split())


# VIDEO: the lines of the focus segment's best clips (section 2).

LINES = 40
"""Maximum number of lines of the chosen clips."""


def video(
    context: QueryContext, focus: Segment | None, seen: Collection[str], settings: AskSettings
) -> Retrieval:
    """Return the lines of the best clips not shown yet.

    Args:
        focus: The segment whose clips are searched; None: all clips in view.
        seen: Refs already shown, such as ``m12``.
        settings: Number of clips and cosine threshold.
    """
    cells = np.arange(context.lines.cell_count) if focus is None else context.cells_of(focus)
    chosen = _unseen(context, cells, seen, settings)
    lines = np.setdiff1d(context.lines.lines_of(chosen.tolist()), _shown_lines(context, seen))
    clips = len(cells) if focus else context.candidates.clips
    where = f"{clips} clips" + (f" of the event {focus.label!r}" if focus else "")
    return _result(context, focus, _ranked_lines(context, lines, LINES), where)


def about_people(
    context: QueryContext,
    focus: Segment | None,
    people: Sequence[ViewPerson],
    mentions: Collection[int],
    wanted: int,
) -> Retrieval:
    """Return the best lines that mention people in the query.

    Args:
        focus: The segment that was searched, if any.
        people: The people that the query names.
        mentions: Ids of lines that mention them and were not shown yet.
        wanted: Maximum number of lines.
    """
    names = ", ".join(person.character.label for person in people)
    ranked = _ranked_lines(context, context.lines.lines_with(mentions), wanted)
    return _result(context, focus, ranked, f"what mentions {names}")


def _unseen(
    context: QueryContext, cells: Ints, seen: Collection[str], settings: AskSettings
) -> Ints:
    """Return the best cells that were not shown yet, best first.

    Cells near the query (section 4.2: cosine at least 0.5) or with words of it come first; without
    any, the best other cells are returned, and the result is marked as not close.
    """
    if context.relevance is None:
        return cells[:0]
    # Cells with a line near the query or a word of it.
    hits = context.candidates.hits
    marked = np.asarray(context.relevance.near >= settings.video_cosine)
    for word in context.words & hits.counts.keys():
        marked |= np.isin(context.candidates.places, hits.counts[word][0])
    near = marked[cells]
    order = cells[np.lexsort((-context.relevance.cells[cells], ~near))]
    lines = context.lines
    cells, counts = np.unique(lines.cell_of_line[_shown_lines(context, seen)], return_counts=True)
    fresh = order[~np.isin(order, np.asarray(cells[counts == np.diff(lines.bounds)[cells]]))]
    return np.asarray(fresh[: settings.video_clips], dtype=np.int64)


def _shown_lines(context: QueryContext, seen: Collection[str]) -> Ints:
    return context.lines.lines_with([int(ref[1:]) for ref in seen if ref.startswith("m")])


def _ranked_lines(context: QueryContext, lines: Ints, wanted: int) -> list[RankedLine]:
    """Return the ``wanted`` best lines, best first."""
    if context.relevance is None or not len(lines):
        return []
    cells = context.lines.cell_of_line
    scores = line_scores(context.candidates, context.relevance, lines).max(axis=0)
    order = np.argsort(-scores, kind="stable")[:wanted]
    return [RankedLine(int(lines[i]), int(cells[lines[i]]), float(scores[i])) for i in order]


def _result(
    context: QueryContext, focus: Segment | None, ranked: list[RankedLine], where: str
) -> Retrieval:
    evidence = context.evidence(ranked)
    return Retrieval(
        mode=Mode.VIDEO,
        query=context.query,
        focus=focus,
        evidence=evidence,
        nothing_close=nothing_close(evidence, context.candidates.view_lines),
        searched=context.searched(where),
    )
