"""The beginning and the end of a view: the first or last lines said, read or seen."""

from __future__ import annotations

from collections.abc import Sequence

from domain.memories import PRESENCE_SOURCES, MemorySource
from domain.search import Asks, Finding, Structure, StructurePart
from retrieval.heuristics.answer_sentence import complete_sentences
from retrieval.people_in_query import line_text
from retrieval.query_context import QueryContext
from retrieval.view_lines import ViewLine

SHARE, MIN_MS, MAX_MS = 0.05, 10_000, 60_000
"""Length of the beginning and of the end: a share of the video, within these limits."""
SENTENCES, READ = 2, 1
"""Number of quoted sentences of speech, and of screen texts."""
FEW_WORDS = 4
"""Mean number of words of the quoted sentences below which one more is quoted."""


def beginning_or_end(
    context: QueryContext, structure: Structure
) -> tuple[Finding, tuple[ViewLine, ...]] | None:
    """Return the first or last lines; None without any."""
    rows = context.rows
    if not rows:
        return None
    video = rows[0].video if structure.asks is Asks.BEGINNING else rows[-1].video
    rows_of_video = [row for row in rows if row.video == video and not row.names_somebody]
    chosen = _chosen(context, rows_of_video, structure)
    if not chosen:
        return None
    finding = Finding(
        asks=structure.asks,
        manner=structure.manner,
        parts=tuple(part_of(context, group) for group in chosen),
        exact=_is_near_end(
            rows_of_video, [row for group in chosen for row in group], structure.asks
        ),
    )
    return finding, tuple(row for group in chosen for row in group)


def _is_near_end(rows: Sequence[ViewLine], chosen: Sequence[ViewLine], asks: Asks) -> bool:
    """Check whether the chosen lines are near the first or last line of the video."""
    start, end = min(map(_start, rows)), max(map(_end, rows))
    limit = max(MIN_MS, SHARE * (end - start))
    if asks is Asks.BEGINNING:
        return min(map(_start, chosen)) - start <= limit
    return end - max(map(_end, chosen)) <= limit


def _chosen(
    context: QueryContext, rows: Sequence[ViewLine], structure: Structure
) -> list[list[ViewLine]]:
    """Choose sentences, screen texts and people of the beginning or end, in the order of time."""
    last = structure.asks is Asks.END
    near = _at_end(rows, structure.manner, last=last)
    groups: list[list[ViewLine]] = []
    if structure.manner != "shown":
        groups += _sentences(context, [row for row in near if _has_content(row)], last=last)
    if structure.manner != "said":
        near.sort(key=_end if last else _start)
        read = [row for row in near if row.line.source == MemorySource.READ]
        presence = [
            row for row in near if row.line.source in PRESENCE_SOURCES and not row.described
        ]
        groups += [[row] for row in (*_edge(read, READ, last=last), *_edge(presence, 1, last=last))]
        groups = groups or [[row] for row in _edge(rows, 1, last=last)]
    return sorted(groups, key=lambda group: (group[0].line.start_ms, group[0].line.id))


def _has_content(row: ViewLine) -> bool:
    return row.spoken or row.described or row.line.source == MemorySource.CHAPTER


def _at_end(rows: Sequence[ViewLine], manner: str, *, last: bool) -> list[ViewLine]:
    """Return the lines of the first or last interval, doubled until one of them fits."""
    start, end = rows[0].line.start_ms, max(row.line.end_ms for row in rows)
    reach = min(MAX_MS, max(MIN_MS, SHARE * (end - start)))
    while reach < 2 * (end - start) + MIN_MS:
        near = [r for r in rows if (_end(r) >= end - reach if last else _start(r) <= start + reach)]
        if any(_fits(row, manner) for row in near):
            return near
        reach *= 2
    return list(rows)


def _fits(row: ViewLine, manner: str) -> bool:
    """Check whether a line is of the requested manner: said, shown, or either."""
    if manner == "said":
        return row.spoken or row.described
    read = row.line.source == MemorySource.READ or row.described
    return read or (row.line.source in PRESENCE_SOURCES if manner == "shown" else row.spoken)


def _start(row: ViewLine) -> int:
    return row.line.start_ms


def _end(row: ViewLine) -> int:
    return row.line.end_ms


def _edge(rows: Sequence[ViewLine], count: int, *, last: bool) -> list[ViewLine]:
    """Return the first or last ``count`` lines."""
    return list(rows[-count:] if last else rows[:count])


def _sentences(
    context: QueryContext, rows: Sequence[ViewLine], *, last: bool
) -> list[list[ViewLine]]:
    """Return the first or last sentences, each as a list of its lines."""
    known = {row.number: row for row in context.rows}
    groups: list[list[ViewLine]] = []
    used: set[int] = set()
    for row in reversed(rows) if last else rows:
        if row.number in used:
            continue
        numbers = (
            complete_sentences(context.all_lines, row.number).lines if row.spoken else (row.number,)
        )
        groups.append([known[n] for n in numbers if n in known and n not in used])
        used |= set(numbers)
        if len(groups) >= SENTENCES and sum(map(_words, groups)) >= SENTENCES * FEW_WORDS:
            break
    return groups


def _words(group: Sequence[ViewLine]) -> int:
    return sum(len(row.line.text.split()) for row in group)


def part_of(context: QueryContext, group: Sequence[ViewLine]) -> StructurePart:
    """Join lines of one sentence to a quotation."""
    text = " ".join(row.line.text.strip() for row in group)
    first = group[0].line._replace(text=text)
    return StructurePart(
        text=line_text(first, context.people.names(group[0].video)),
        refs=tuple(row.ref for row in group),
    )
