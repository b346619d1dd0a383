"""The lines of a video as a transcript shows them: those of some clips, and those with words."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, cast, func, literal, or_, select
from sqlalchemy.dialects.postgresql import REGCONFIG
from sqlalchemy.orm import Session

from domain.memories import Memory, MemoryKind, MemorySource, Scope
from domain.people import TAG_KINDS
from domain.time import TimeSpan
from store.queries.conditions import is_any_of, is_any_text
from store.tables.schema import ClipRow, MemoryRow

MARK_START, MARK_END = "\x02", "\x03"
"""Stand around the words of a line that were searched for."""
_ENGLISH = cast(literal("english"), REGCONFIG)
_MARKED = f"StartSel={MARK_START}, StopSel={MARK_END}, HighlightAll=true"


def clips_around(
    session: Session, scope: Scope, at_ms: int, before: int, count: int
) -> tuple[int, int, TimeSpan | None, TimeSpan | None] | None:
    """Return ``count`` clips, up to ``before`` of them before a moment; None where there are none.

    They are the first and the last, and the spans of the clips just before and after these; None
    at either end.

    A moment in a gap counts as the clip after it, one after the end as the last clip.
    """
    row = ClipRow
    seen = and_(row.video_id == scope.video, row.clip <= scope.last_clip)
    at_moment = select(func.min(row.clip)).where(seen, row.end_ms > at_ms)
    last_clip = select(func.max(row.clip)).where(seen)
    either = func.coalesce(at_moment.scalar_subquery(), last_clip.scalar_subquery())
    clip = session.scalar(select(either))
    if clip is None:
        return None
    first = max(0, clip - before)
    wide = and_(row.clip >= first - 1, row.clip <= first + count)
    query = select(row.clip, row.start_ms, row.end_ms).where(seen, wide).order_by(row.clip)
    spans = {number: TimeSpan.of(start, end) for number, start, end in session.execute(query)}
    inside = [number for number in spans if first <= number < first + count]
    first, last = inside[0], inside[-1]
    return first, last, spans.get(first - 1), spans.get(last + 1)


def lines_of_clips(
    session: Session, scope: Scope, first: int, last: int, sources: Collection[str], limit: int
) -> list[Memory]:
    """Return the first ``limit`` lines from clip ``first`` to clip ``last``, in order of time."""
    row = MemoryRow
    query = _lines(scope, sources, row.text).where(row.clip >= first, row.clip <= last)
    return _read(session, query.limit(limit))


def lines_named(
    session: Session, scope: Scope, ids: Collection[int], sources: Collection[str]
) -> list[Memory]:
    """Return those of these lines that are in scope and of these sources, in order of time."""
    query = _lines(scope, sources, MemoryRow.text).where(is_any_of(MemoryRow.id, ids))
    return _read(session, query)


def lines_with_words(
    session: Session,
    scope: Scope,
    words: str,
    people: Sequence[tuple[str, tuple[str, ...]]],
    sources: Collection[str],
    limit: int,
) -> tuple[list[Memory], int]:
    """Return the first ``limit`` lines with all these words and people, and how many there are.

    Words match by stem and are marked; those in quotation marks match as a phrase. Where no line
    matches so, lines with the words as they are written are returned, without marks.
    """
    row = MemoryRow
    sought: ColumnElement[Any] = func.websearch_to_tsquery(_ENGLISH, words)
    for name, tags in people:
        # An empty query matches nothing, and is nothing beside another.
        either: ColumnElement[Any] = func.phraseto_tsquery(_ENGLISH, name)
        for tag in tags:
            either = either.op("||")(
                func.plainto_tsquery(_ENGLISH, tag.strip("<>").replace("_", ""))
            )
        sought = sought.op("&&")(either)
    marked = func.ts_headline(_ENGLISH, row.text, sought, _MARKED)
    found = _counted(session, scope, sources, marked, row.words.op("@@")(sought), limit)
    if found[1] or people or _is_in_tags(words):
        return found
    contains = row.text.icontains(words.strip(), autoescape=True)
    return _counted(session, scope, sources, row.text, contains, limit)


def _is_in_tags(words: str) -> bool:
    """Check whether these words may be a part of a tag such as ``<face_1>``, which nobody reads."""
    core = words.strip().casefold().strip("<>_0123456789")
    return any(core in kind for kind in TAG_KINDS)


def _counted(
    session: Session,
    scope: Scope,
    sources: Collection[str],
    text: Any,
    condition: ColumnElement[bool],
    limit: int,
) -> tuple[list[Memory], int]:
    counting = _lines(scope, sources, MemoryRow.text).where(condition).order_by(None)
    total = session.scalar(counting.with_only_columns(func.count())) or 0
    lines = _read(session, _lines(scope, sources, text).where(condition).limit(limit))
    return lines, total


def _lines(scope: Scope, sources: Collection[str], text: Any) -> Select[*tuple[Any, ...]]:
    row = MemoryRow
    holds = or_(row.superseded_at.is_(None), row.superseded_at > scope.last_clip)
    shown = and_(row.kind == str(MemoryKind.EPISODIC), is_any_text(row.source, sources))
    return (
        select(
            row.id, row.video_id, row.clip, row.source, text, row.speaker, row.start_ms, row.end_ms
        )
        .where(row.video_id == scope.video, row.clip <= scope.last_clip, holds, shown)
        .order_by(row.start_ms, row.id)
    )


def _read(session: Session, query: Select[*tuple[Any, ...]]) -> list[Memory]:
    return [spoken_line(tuple(row)) for row in session.execute(query)]


def spoken_line(row: tuple[Any, ...]) -> Memory:
    """Return the episodic line of a row: id, video, clip, source, text, speaker, start and end."""
    number, video, clip, source, text, speaker, start, end = row
    return Memory(
        id=number,
        video=video,
        clip=clip,
        kind=MemoryKind.EPISODIC,
        source=MemorySource(source),
        text=text,
        speaker=speaker,
        span=TimeSpan.of(start, end),
    )
