"""When identities of a video appear, their mean vectors, and who shares a frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pgvector.sqlalchemy import VECTOR
from sqlalchemy import (
    ARRAY,
    CTE,
    BigInteger,
    Integer,
    Select,
    TableValuedAlias,
    case,
    cast,
    column,
    func,
    select,
)
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.orm import Session, aliased

from store.arrays import is_any_of
from store.tables.schema import ExemplarRow, IdentityRow, SightingRow, UtteranceRow


class AppearanceSpan(NamedTuple):
    """A span over which an identity appears without a longer gap."""

    identity: int
    start_ms: int
    end_ms: int


class Centre(NamedTuple):
    """The mean of an identity's ``exemplars``, shape (D,), not normalised."""

    kind: str
    exemplars: int
    vector: NDArray[np.float32]


def appearance_spans(
    session: Session, video_id: str, identities: Sequence[int], gap_ms: int
) -> list[AppearanceSpan]:
    """Return when these identities appear, by identity and time; gaps up to ``gap_ms`` are joined.

    In a clip without a sighting of an identity its utterances count.
    """
    sightings, utterances = (
        _spans_by_clip(of, video_id, identities) for of in (SightingRow, UtteranceRow)
    )
    seen, said = sightings.c, utterances.c
    silent = select(utterances).where(
        ~select(seen.clip).where(seen.identity == said.identity, seen.clip == said.clip).exists()
    )
    appearances = select(sightings).union_all(silent).subquery()
    return [AppearanceSpan(*row) for row in session.execute(_join_close(appearances, gap_ms))]


def _spans_by_clip(table: Any, video_id: str, identities: Sequence[int]) -> CTE:
    """Return the span from the first to the last appearance of each identity in each clip."""
    start, end = func.min(table.start_ms).label("start"), func.max(table.end_ms).label("end")
    query = select(table.identity_id.label("identity"), table.clip.label("clip"), start, end)
    matching = query.where(table.video_id == video_id, is_any_of(table.identity_id, identities))
    return matching.group_by(table.identity_id, table.clip).cte()


def _join_close(appearances: Any, gap_ms: int) -> Select[int, int, int]:
    """Join spans that are at most ``gap_ms`` apart: a new one begins after each longer gap."""
    row = appearances.c
    previous_end = func.max(row.end).over(
        partition_by=row.identity, order_by=(row.start, row.end), rows=(None, -1)
    )
    begins = case((row.start - previous_end <= gap_ms, 0), else_=1).label("begins")
    marked = select(row.identity, row.start, row.end, begins).subquery().c
    order = (marked.start, marked.end)
    number = func.sum(marked.begins).over(partition_by=marked.identity, order_by=order)
    numbered = (
        select(marked.identity, marked.start, marked.end, number.label("number")).subquery().c
    )
    start = func.min(numbered.start)
    query = select(numbered.identity, start, func.max(numbered.end))
    return query.group_by(numbered.identity, numbered.number).order_by(numbered.identity, start)


def best_crops(session: Session, identities: Sequence[int]) -> dict[int, str]:
    """Return the SHA-256 of the best crop of each identity that has one."""
    row = SightingRow
    best = (
        select(row.identity_id, row.blob)
        .where(is_any_of(row.identity_id, identities), row.blob.is_not(None))
        .ext(distinct_on(row.identity_id))
        .order_by(row.identity_id, row.quality.desc(), row.id)
    )
    return {identity: blob for identity, blob in session.execute(best) if blob}


def identity_centres(session: Session, video_id: str) -> Mapping[int, Centre]:
    """Return the centre of every identity of a video that has exemplars, by identity."""
    mean = func.vector_send(func.avg(ExemplarRow.vector, type_=VECTOR()))
    query = (
        select(IdentityRow.id, IdentityRow.kind, func.count(), mean)
        .join(ExemplarRow, ExemplarRow.identity_id == IdentityRow.id)
        .where(IdentityRow.video_id == video_id)
        .group_by(IdentityRow.id, IdentityRow.kind)
    )
    return {
        identity: Centre(kind, count, _unpacked(sent))
        for identity, kind, count, sent in session.execute(query)
    }


def _unpacked(sent: bytes) -> NDArray[np.float32]:
    """Unpack the result of ``vector_send``: size, two zero bytes, 32-bit floats."""
    return np.frombuffer(sent[4:], dtype=">f4").astype(np.float32)


def seen_together(
    session: Session, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]
) -> list[bool]:
    """Check for each pair of groups whether members of both are in one frame."""
    firsts, seconds = ([pair[at] for pair in pairs] for at in (0, 1))
    first, second = _numbered(firsts, "one"), _numbered(seconds, "other")
    a, b = aliased(SightingRow), aliased(SightingRow)
    query = (
        select(first.c.n)
        .distinct()
        .join(second, second.c.n == first.c.n)
        .join(a, a.identity_id == first.c.identity)
        .join(
            b,
            (b.identity_id == second.c.identity) & (b.clip == a.clip) & (b.start_ms == a.start_ms),
        )
        .where(a.video_id == b.video_id, a.box.is_not(None), b.box.is_not(None))
    )
    together = set(session.scalars(query))
    return [n in together for n in range(len(pairs))]


def _numbered(lists: Sequence[Sequence[int]], name: str) -> TableValuedAlias:
    """Return a table of identities with the number of their list.

    It takes two parameters, however many identities there are.
    """
    rows = [(n, identity) for n, several in enumerate(lists) for identity in several]
    numbers = cast([n for n, _ in rows], ARRAY(Integer))
    identities = cast([identity for _, identity in rows], ARRAY(BigInteger))
    columns = (column("n", Integer), column("identity", BigInteger))
    return func.unnest(numbers, identities).table_valued(*columns, name=name).render_derived()
