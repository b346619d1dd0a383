"""VIDEO: the lines of the focus segment's best clips (section 2)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from domain.asking import Mode
from domain.memories import Segment
from domain.settings import AskSettings
from retrieval.line_ranking import RankedLine, line_scores
from retrieval.line_set import Ints
from retrieval.people_in_query import ViewPerson
from retrieval.query_context import QueryContext, nothing_close
from retrieval.relevance import Relevance
from retrieval.result import Retrieval

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
    near = _near(context, context.relevance, settings.video_cosine)[cells]
    order = cells[np.lexsort((-context.relevance.cells[cells], ~near))]
    fresh = order[~np.isin(order, _shown_cells(context, seen))]
    return np.asarray(fresh[: settings.video_clips], dtype=np.int64)


def _near(context: QueryContext, relevance: Relevance, cosine: float) -> NDArray[np.bool_]:
    """Mark the cells with a line near the query or a word of it, shape (N,)."""
    near, hits = np.asarray(relevance.near >= cosine), context.candidates.hits
    for word in context.words & hits.counts.keys():
        near |= np.isin(context.candidates.places, hits.counts[word][0])
    return near


def _shown_cells(context: QueryContext, seen: Collection[str]) -> Ints:
    lines = context.lines
    cells, counts = np.unique(lines.cell_of_line[_shown_lines(context, seen)], return_counts=True)
    return np.asarray(cells[counts == np.diff(lines.bounds)[cells]])


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
