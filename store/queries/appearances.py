"""When each identity of a video is seen and heard, what it looks like, and who is in one frame."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.orm import Session, aliased

from store.schema import ExemplarRow, IdentityRow, SightingRow, UtteranceRow


class Stretch(NamedTuple):
    """From the first to the last time that an identity is met in one clip."""

    identity: int
    clip: int
    start_ms: int
    end_ms: int


def stretches_of(session: Session, video_id: str) -> list[Stretch]:
    """One stretch for each identity and clip; by what it said where no sighting was kept."""
    found: dict[tuple[int, int], Stretch] = {}
    for of in (UtteranceRow, SightingRow):
        query = (
            select(of.identity_id, of.clip, func.min(of.start_ms), func.max(of.end_ms))
            .where(of.video_id == video_id, of.identity_id.is_not(None))
            .group_by(of.identity_id, of.clip)
        )
        for row in session.execute(query):
            found[row[0] or 0, row[1]] = Stretch(row[0] or 0, *row[1:])
    return sorted(found.values(), key=lambda one: (one.identity, one.start_ms))


def crops_of(session: Session, identities: Sequence[int]) -> dict[int, str]:
    """SHA-256 of the best crop of each identity that has one."""
    row = SightingRow
    best = (
        select(row.identity_id, row.blob)
        .where(row.identity_id.in_(identities), row.blob.is_not(None))
        .ext(distinct_on(row.identity_id))
        .order_by(row.identity_id, row.quality.desc(), row.id)
    )
    return {identity: blob for identity, blob in session.execute(best) if blob}


def exemplar_vectors(
    session: Session, video_id: str
) -> Mapping[int, tuple[str, list[Sequence[float]]]]:
    """Kind and exemplar vectors, each of shape (D,), of every identity that has some."""
    query = (
        select(IdentityRow.id, IdentityRow.kind, ExemplarRow.vector)
        .join(ExemplarRow, ExemplarRow.identity_id == IdentityRow.id)
        .where(IdentityRow.video_id == video_id)
        .order_by(IdentityRow.id, ExemplarRow.id)
    )
    found: dict[int, tuple[str, list[Sequence[float]]]] = {}
    for identity, kind, vector in session.execute(query):
        found.setdefault(identity, (kind, []))[1].append(vector)
    return found


def seen_together(session: Session, one: Iterable[int], other: Iterable[int]) -> bool:
    """Whether some of these identities and some of those are in one sampled frame."""
    a, b = aliased(SightingRow), aliased(SightingRow)
    query = (
        select(a.id)
        .join(b, (b.video_id == a.video_id) & (b.clip == a.clip) & (b.start_ms == a.start_ms))
        .where(a.identity_id.in_(list(one)), b.identity_id.in_(list(other)))
        .where(a.box.is_not(None), b.box.is_not(None))
        .limit(1)
    )
    return session.scalar(query) is not None
