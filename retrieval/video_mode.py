"""VIDEO: what was remembered of the focus segment's clips, closest clips first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from domain.asking import Mode
from domain.memories import Segment
from domain.settings import AskSettings
from retrieval.coarse import best_of
from retrieval.moments import MomentScore, line_scores, lines_of
from retrieval.people_in_query import ViewPerson
from retrieval.query_context import QueryContext, nothing_close
from retrieval.relevance import Relevance, Scores
from retrieval.result import Retrieval
from retrieval.video_index import Ints

LINES = 40
"""Most lines shown of the chosen clips."""

MOST_SHARPENED = 1_000
"""Cells that are all looked into exactly; of more it is those that may be among the best."""

MentionsOf = Callable[[ViewPerson], Ints]
"""The numbers of the lines in force that mention a person, anywhere in view, ascending."""


def video(
    sought: QueryContext,
    focus: Segment | None,
    mentions_of: MentionsOf,
    seen: Collection[str],
    settings: AskSettings,
) -> Retrieval:
    """The lines of the best clips not shown yet; or those about the person that is asked about.

    Args:
        sought: the search.
        focus: whose clips are searched; None: all in view.
        mentions_of: looks up what mentions a person.
        seen: refs already shown, such as ``m12``.
        settings: how many clips, how many memories of a person, which cosine is close.
    """
    people = sought.cast.named_in(sought.query)
    if people and sought.field is not None:
        wanted = settings.character_memories
        moments = _about(sought, focus, people, mentions_of, seen, wanted)
        if moments:
            names = ", ".join(person.character.label for person in people)
            return _result(sought, focus, moments, f"what mentions {names}")
    whole = np.arange(sought.panorama.cell_count)
    cells = whole if focus is None else sought.cells_of(focus)
    chosen = _unseen(sought, cells, seen, settings)
    lines = np.setdiff1d(lines_of(sought.panorama, chosen), _shown_lines(sought, seen))
    moments = _ranked_lines(sought, lines, LINES)
    return _result(sought, focus, moments, _where(focus, len(cells)))


def _where(focus: Segment | None, clips: int) -> str:
    return f"{clips} clips" + (f" of the event {focus.label!r}" if focus else "")


def _unseen(
    sought: QueryContext, cells: Ints, seen: Collection[str], settings: AskSettings
) -> Ints:
    """The best cells, best first, without those that were shown already.

    Those that are near (section 4.2: cosine at least 0.5) or have words of the query are
    preferred; where there are none, what is best is still shown, and said not to be close.
    """
    if sought.field is None:
        return cells[:0]
    if len(cells) <= MOST_SHARPENED:
        sought.field.sharpen(cells)
    else:
        sought.field.sharpen_best()
    near = _near(sought, sought.field, settings.video_cosine)[cells]
    order = cells[np.lexsort((-sought.field.cells[cells], ~near))]
    shown = _shown_cells(sought, seen)
    fresh = (cell for cell in order if cell not in shown)
    return np.fromiter(islice(fresh, settings.video_clips), np.int64)


def _near(sought: QueryContext, field: Relevance, cosine: float) -> NDArray[np.bool_]:
    """Which cells have a line near the query, or a word of it, shape (N,)."""
    near = np.asarray(field.near[0] >= cosine)
    for word in sought.words:
        posting = sought.panorama.posting(word)
        if posting is not None:
            near[posting.cells] = True
    return near


def _shown_cells(sought: QueryContext, seen: Collection[str]) -> frozenset[int]:
    """The cells of which every line was shown: what was not shown is not seen."""
    view = sought.panorama
    shown = Counter(view.cell_of_line[_shown_lines(sought, seen)].tolist())
    return frozenset(c for c, n in shown.items() if n == len(lines_of(view, np.array([c]))))


def _shown_lines(sought: QueryContext, seen: Collection[str]) -> Ints:
    ids = sorted(int(ref[1:]) for ref in seen if ref.startswith("m"))
    if not ids:
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(np.isin(sought.panorama.ids, ids))


def _ranked_lines(sought: QueryContext, lines: Ints, wanted: int) -> list[MomentScore]:
    """The best so many lines, best first."""
    if sought.field is None or not len(lines):
        return []
    cells = sought.panorama.cell_of_line
    scores = _sharp_scores(sought, sought.field, lines, wanted)
    order = np.argsort(-scores, kind="stable")[:wanted]
    return [MomentScore(int(lines[i]), int(cells[lines[i]]), float(scores[i])) for i in order]


def _sharp_scores(sought: QueryContext, field: Relevance, lines: Ints, wanted: int) -> Scores:
    """The scores of some lines, (L,): exact of those that may be among the best so many."""
    view, asked = sought.panorama, sought.asked
    scores = np.asarray(line_scores(view, asked, field, lines).max(axis=0))
    if field.exact(view.cell_of_line[lines]).all():
        return scores
    seeming = best_of(scores, wanted)
    field.sharpen(view.cell_of_line[lines[seeming]])
    scores = np.asarray(line_scores(view, asked, field, lines).max(axis=0))
    # A line's own cosine is off too, beside its cell's score.
    close = np.flatnonzero(scores >= scores[seeming].min() - 2 * field.off)
    field.sharpen(view.cell_of_line[lines[close]])
    return np.asarray(line_scores(view, asked, field, lines).max(axis=0))


def _about(
    sought: QueryContext,
    focus: Segment | None,
    people: Collection[ViewPerson],
    mentions_of: MentionsOf,
    seen: Collection[str],
    wanted: int,
) -> list[MomentScore]:
    """Memories about these people not shown yet, best first: in the focus, else anywhere."""
    for where in (focus, None) if focus else (None,):
        lines = _mentioning(sought, where, people, mentions_of)
        fresh = np.setdiff1d(lines, _shown_lines(sought, seen))
        if len(fresh):
            return _ranked_lines(sought, fresh, wanted)
    return []


def _mentioning(
    sought: QueryContext,
    focus: Segment | None,
    people: Collection[ViewPerson],
    mentions_of: MentionsOf,
) -> Ints:
    lines = np.unique(np.concatenate([mentions_of(person) for person in people]))
    if focus is not None:
        inside = np.isin(sought.panorama.cell_of_line[lines], sought.cells_of(focus))
        lines = lines[inside]
    return np.asarray(lines, dtype=np.int64)


def _result(
    sought: QueryContext, focus: Segment | None, moments: list[MomentScore], where: str
) -> Retrieval:
    evidence = sought.evidence(moments)
    return Retrieval(
        mode=Mode.VIDEO,
        query=sought.query,
        focus=focus,
        evidence=evidence,
        nothing_close=nothing_close(evidence, sought.panorama.line_count),
        searched=sought.searched(where),
    )
