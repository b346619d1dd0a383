"""VIDEO: what was remembered of the focus segment's clips, closest clips first."""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import islice

import numpy as np

from domain.asking import Mode
from domain.events import Segment
from domain.settings import AskSettings
from memory.retrieval.index import Ints
from memory.retrieval.moments import Moment, line_scores, lines_of
from memory.retrieval.people import Person
from memory.retrieval.result import Retrieval
from memory.retrieval.sought import Sought, nothing_close

LINES = 40
"""Most lines shown of the chosen clips."""

MentionsOf = Callable[[Person, Collection[int] | None], set[int]]
"""Ids of the memories that mention a person, within clips or (None) anywhere in view."""


def video(
    sought: Sought,
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
    people = sought.cast.named_in(sought.asked.text)
    if people and sought.field is not None:
        moments = _about(sought, focus, people, mentions_of, settings.character_memories)
        if moments:
            names = ", ".join(person.character.label for person in people)
            return _result(sought, focus, moments, f"what mentions {names}")
    cells = _all_cells(sought) if focus is None else sought.cells_of(focus)
    chosen = _unseen(sought, cells, seen, settings.video_clips)
    moments = _ranked_lines(sought, lines_of(sought.panorama, chosen))[:LINES]
    return _result(sought, focus, moments, _where(focus, len(cells)))


def _where(focus: Segment | None, clips: int) -> str:
    return f"{clips} clips" + (f" of the event {focus.label!r}" if focus else "")


def _all_cells(sought: Sought) -> Ints:
    return np.arange(sought.panorama.cell_count)


def _unseen(sought: Sought, cells: Ints, seen: Collection[str], most: int) -> Ints:
    """The best ``most`` cells, best first, without those of which a line was shown already."""
    if sought.field is None:
        return cells[:0]
    order = cells[np.argsort(-sought.field.cells[cells], kind="stable")]
    fresh = (cell for cell in order if not _was_shown(sought, int(cell), seen))
    return np.fromiter(islice(fresh, most), np.int64)


def _was_shown(sought: Sought, cell: int, seen: Collection[str]) -> bool:
    lines = lines_of(sought.panorama, np.array([cell]))
    return any(f"m{sought.panorama.line(int(line))[1].id}" in seen for line in lines)


def _ranked_lines(sought: Sought, lines: Ints) -> list[Moment]:
    """Lines, best first."""
    if sought.field is None or not len(lines):
        return []
    scores = line_scores(sought.panorama, sought.asked, sought.field, lines).max(axis=0)
    order = np.argsort(-scores, kind="stable")
    cells = sought.panorama.cell_of_line
    return [Moment(int(lines[i]), int(cells[lines[i]]), float(scores[i])) for i in order]


def _about(
    sought: Sought,
    focus: Segment | None,
    people: Collection[Person],
    mentions_of: MentionsOf,
    limit: int,
) -> list[Moment]:
    """The best memories about these people: in the focus, else anywhere in view."""
    for where in (focus, None) if focus else (None,):
        lines = _mentioning(sought, where, people, mentions_of)
        if len(lines):
            return _ranked_lines(sought, lines)[:limit]
    return []


def _mentioning(
    sought: Sought, focus: Segment | None, people: Collection[Person], mentions_of: MentionsOf
) -> Ints:
    cells = _all_cells(sought) if focus is None else sought.cells_of(focus)
    ids = set[int]().union(*(mentions_of(p, focus.clips if focus else None) for p in people))
    lines = lines_of(sought.panorama, cells)
    return np.asarray(lines[np.isin(sought.panorama.ids[lines], sorted(ids))], dtype=np.int64)


def _result(sought: Sought, focus: Segment | None, moments: list[Moment], where: str) -> Retrieval:
    evidence = sought.evidence(moments)
    return Retrieval(
        mode=Mode.VIDEO,
        query=sought.asked.text,
        focus=focus,
        evidence=evidence,
        nothing_close=nothing_close(evidence, sought.panorama.line_count),
        searched=sought.searched(where),
    )
