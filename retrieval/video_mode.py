"""VIDEO: what was remembered of the focus segment's clips, closest clips first."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from domain.asking import Mode
from domain.memories import Segment
from domain.settings import AskSettings
from retrieval.line_set import Ints
from retrieval.moments import MomentScore, line_scores
from retrieval.people_in_query import ViewPerson
from retrieval.query_context import QueryContext, nothing_close
from retrieval.relevance import Relevance
from retrieval.result import Retrieval

LINES = 40
"""Most lines shown of the chosen clips."""


def video(
    context: QueryContext, focus: Segment | None, seen: Collection[str], settings: AskSettings
) -> Retrieval:
    """Return the lines of the best clips not shown yet.

    Args:
        context: the search.
        focus: whose clips are searched; None: all in view.
        seen: refs already shown, such as ``m12``.
        settings: how many clips, which cosine is close.
    """
    cells = np.arange(context.lines.cell_count) if focus is None else context.cells_of(focus)
    chosen = _unseen(context, cells, seen, settings)
    lines = np.setdiff1d(context.lines.lines_of(chosen.tolist()), _shown_lines(context, seen))
    clips = len(cells) if focus else context.found.clips
    where = f"{clips} clips" + (f" of the event {focus.label!r}" if focus else "")
    return _result(context, focus, _ranked_lines(context, lines, LINES), where)


def about_people(
    context: QueryContext,
    focus: Segment | None,
    people: Sequence[ViewPerson],
    mentions: Collection[int],
    wanted: int,
) -> Retrieval:
    """Return the best lines about people that are asked about.

    Args:
        context: the search.
        focus: the segment that was searched, if any.
        people: whom the query names.
        mentions: ids of lines that mention them and were not shown yet.
        wanted: most lines.
    """
    names = ", ".join(person.character.label for person in people)
    moments = _ranked_lines(context, context.lines.lines_with(mentions), wanted)
    return _result(context, focus, moments, f"what mentions {names}")


def _unseen(
    context: QueryContext, cells: Ints, seen: Collection[str], settings: AskSettings
) -> Ints:
    """The best cells, best first, without those that were shown already.

    Those that are near (section 4.2: cosine at least 0.5) or have words of the query are
    preferred; where there are none, what is best is still shown, and said not to be close.
    """
    if context.relevance is None:
        return cells[:0]
    near = _near(context, context.relevance, settings.video_cosine)[cells]
    order = cells[np.lexsort((-context.relevance.cells[cells], ~near))]
    fresh = order[~np.isin(order, _shown_cells(context, seen))]
    return np.asarray(fresh[: settings.video_clips], dtype=np.int64)


def _near(context: QueryContext, relevance: Relevance, cosine: float) -> NDArray[np.bool_]:
    """Which cells have a line near the query, or a word of it, shape (N,)."""
    near, hits = np.asarray(relevance.near >= cosine), context.found.hits
    for word in context.words & hits.counts.keys():
        near |= np.isin(context.found.places, hits.counts[word][0])
    return near


def _shown_cells(context: QueryContext, seen: Collection[str]) -> Ints:
    """The cells of which every line was shown: what was not shown is not seen."""
    lines = context.lines
    cells, counts = np.unique(lines.cell_of_line[_shown_lines(context, seen)], return_counts=True)
    return np.asarray(cells[counts == np.diff(lines.bounds)[cells]])


def _shown_lines(context: QueryContext, seen: Collection[str]) -> Ints:
    return context.lines.lines_with([int(ref[1:]) for ref in seen if ref.startswith("m")])


def _ranked_lines(context: QueryContext, lines: Ints, wanted: int) -> list[MomentScore]:
    """The best so many lines, best first."""
    if context.relevance is None or not len(lines):
        return []
    cells = context.lines.cell_of_line
    scores = line_scores(context.found, context.relevance, lines).max(axis=0)
    order = np.argsort(-scores, kind="stable")[:wanted]
    return [MomentScore(int(lines[i]), int(cells[lines[i]]), float(scores[i])) for i in order]


def _result(
    context: QueryContext, focus: Segment | None, moments: list[MomentScore], where: str
) -> Retrieval:
    evidence = context.evidence(moments)
    return Retrieval(
        mode=Mode.VIDEO,
        query=context.query,
        focus=focus,
        evidence=evidence,
        nothing_close=nothing_close(evidence, context.found.view_lines),
        searched=context.searched(where),
    )
