"""How a view begins and ends: the first or last things said, read, seen."""

from __future__ import annotations

from collections.abc import Sequence

from domain.memories import PRESENCE_SOURCES, MemorySource
from domain.search import Asks, Finding, Structure, StructurePart
from retrieval.heuristics.answer_sentence import whole
from retrieval.people_in_query import line_text
from retrieval.query_context import QueryContext
from retrieval.view_lines import ViewLine

SHARE, LEAST_MS, MOST_MS = 0.05, 10_000, 60_000
"""The beginning and the end are a twentieth of a video each, within these limits."""
SENTENCES, READ = 2, 1
"""What is quoted of what is said and read."""
FEW_WORDS = 4
"""A sentence of fewer words hardly tells how a video begins: one more is quoted."""


def ends(context: QueryContext, asked: Structure) -> tuple[Finding, tuple[ViewLine, ...]] | None:
    """The first or last lines; None where there are none."""
    rows = context.rows
    if not rows:
        return None
    video = rows[0].video if asked.asks is Asks.BEGINNING else rows[-1].video
    own = [row for row in rows if row.video == video and not row.names_somebody]
    chosen = _chosen(context, own, asked)
    if not chosen:
        return None
    found = Finding(
        asks=asked.asks,
        manner=asked.manner,
        parts=tuple(part_of(context, group) for group in chosen),
        exact=_reaches(own, [row for group in chosen for row in group], asked.asks),
    )
    return found, tuple(row for group in chosen for row in group)


def _reaches(rows: Sequence[ViewLine], chosen: Sequence[ViewLine], asks: Asks) -> bool:
    """Whether what was chosen is near the very beginning or end of what was recorded."""
    start, end = min(map(_start, rows)), max(map(_end, rows))
    most = max(LEAST_MS, SHARE * (end - start))
    if asks is Asks.BEGINNING:
        return min(map(_start, chosen)) - start <= most
    return end - max(map(_end, chosen)) <= most


def _chosen(
    context: QueryContext, rows: Sequence[ViewLine], asked: Structure
) -> list[list[ViewLine]]:
    """Sentences, texts and people of one end, in the order of time."""
    last = asked.asks is Asks.END
    near = _at_end(rows, asked.manner, last=last)
    groups: list[list[ViewLine]] = []
    if asked.manner != "shown":
        groups += _sentences(context, [row for row in near if _tells(row)], last=last)
    if asked.manner != "said":
        near.sort(key=_end if last else _start)
        read = [row for row in near if row.line.source == MemorySource.READ]
        there = [row for row in near if row.line.source in PRESENCE_SOURCES and not row.described]
        groups += [[row] for row in (*_edge(read, READ, last=last), *_edge(there, 1, last=last))]
        groups = groups or [[row] for row in _edge(rows, 1, last=last)]
    return sorted(groups, key=lambda group: (group[0].line.start_ms, group[0].line.id))


def _tells(row: ViewLine) -> bool:
    return row.spoken or row.described or row.line.source == MemorySource.CHAPTER


def _at_end(rows: Sequence[ViewLine], manner: str, *, last: bool) -> list[ViewLine]:
    """The lines of the first or last stretch, as long as it takes to hold one that fits."""
    start, end = rows[0].line.start_ms, max(row.line.end_ms for row in rows)
    reach = min(MOST_MS, max(LEAST_MS, SHARE * (end - start)))
    while reach < 2 * (end - start) + LEAST_MS:
        near = [r for r in rows if (_end(r) >= end - reach if last else _start(r) <= start + reach)]
        if any(_fits(row, manner) for row in near):
            return near
        reach *= 2
    return list(rows)


def _fits(row: ViewLine, manner: str) -> bool:
    """Whether a line says something of what is asked for: what is said, shown, or either."""
    if manner == "said":
        return row.spoken or row.described
    read = row.line.source == MemorySource.READ or row.described
    return read or (row.line.source in PRESENCE_SOURCES if manner == "shown" else row.spoken)


def _start(row: ViewLine) -> int:
    return row.line.start_ms


def _end(row: ViewLine) -> int:
    return row.line.end_ms


def _edge(rows: Sequence[ViewLine], count: int, *, last: bool) -> list[ViewLine]:
    """The first or last so many lines."""
    return list(rows[-count:] if last else rows[:count])


def _sentences(
    context: QueryContext, rows: Sequence[ViewLine], *, last: bool
) -> list[list[ViewLine]]:
    """The first or last sentences, each with its lines."""
    known = {row.number: row for row in context.rows}
    found: list[list[ViewLine]] = []
    used: set[int] = set()
    for row in reversed(rows) if last else rows:
        if row.number in used:
            continue
        numbers = whole(context.all_lines, row.number).lines if row.spoken else (row.number,)
        found.append([known[n] for n in numbers if n in known and n not in used])
        used |= set(numbers)
        if len(found) >= SENTENCES and sum(map(_words, found)) >= SENTENCES * FEW_WORDS:
            break
    return found


def _words(group: Sequence[ViewLine]) -> int:
    return sum(len(row.line.text.split()) for row in group)


def part_of(context: QueryContext, group: Sequence[ViewLine]) -> StructurePart:
    """Lines that belong together as a quotation."""
    text = " ".join(row.line.text.strip() for row in group)
    first = group[0].line._replace(text=text)
    return StructurePart(
        text=line_text(first, context.people.names(group[0].video)),
        refs=tuple(row.ref for row in group),
    )
