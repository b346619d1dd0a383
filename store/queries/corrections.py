"""Corrections of the people of a video, and the learned data they are laid over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import and_, func, insert, select, text, update
from sqlalchemy.orm import Session

from domain.people import ACROSS_VIDEOS, CorrectedCharacter, Correction, CorrectionKind
from domain.time import TimeSpan
from store.queries.conditions import is_any_of
from store.tables.schema import CorrectionRow, IdentityStatementRow, SightingRow, UtteranceRow


class Claim(NamedTuple):
    """The total support for a face being a voice (row ids), and the latest reason."""

    face: int
    voice: int
    support: float
    reason: str


def lock_corrections(session: Session) -> None:
    """Lock corrections against other writers until this transaction ends; watching continues."""
    session.execute(text("LOCK TABLE corrections IN SHARE ROW EXCLUSIVE MODE"))


def corrections_of(session: Session, video_id: str) -> list[Correction]:
    """Return all corrections of a video by number, including undone ones."""
    query = select(CorrectionRow).where(CorrectionRow.video_id == video_id)
    return [_correction(row) for row in session.scalars(query.order_by(CorrectionRow.number))]


def corrections_of_act(session: Session, act: str) -> list[Correction]:
    """Return the corrections that were made as one, by video and number."""
    row = CorrectionRow
    query = select(row).where(row.act == act).order_by(row.video_id, row.number)
    return [_correction(found) for found in session.scalars(query)]


def corrections_across_videos(session: Session) -> dict[str, list[Correction]]:
    """Return the corrections in force about characters of different videos, by video and number."""
    row = CorrectionRow
    kinds = [str(kind) for kind in ACROSS_VIDEOS]
    query = select(row).where(row.act.is_not(None), row.kind.in_(kinds), row.undone.is_(False))
    corrections: dict[str, list[Correction]] = {}
    for found in session.scalars(query.order_by(row.video_id, row.number)):
        corrections.setdefault(found.video_id, []).append(_correction(found))
    return corrections


def add_correction(
    session: Session,
    video_id: str,
    kind: CorrectionKind,
    told: str,
    numbers: Sequence[int],
    outcomes: Sequence[CorrectedCharacter],
    act: str | None = None,
) -> Correction:
    """Record a correction under the next number; call ``lock_corrections`` before."""
    highest = select(func.max(CorrectionRow.number)).where(CorrectionRow.video_id == video_id)
    correction = Correction(
        number=(session.scalar(highest) or 0) + 1,
        kind=kind,
        told=told,
        numbers=tuple(sorted(set(numbers))),
        outcomes=tuple(outcomes),
        act=act,
        video=video_id,
    )
    values = _values(correction) | {"number": correction.number, "kind": str(kind), "act": act}
    session.execute(insert(CorrectionRow).values(values | {"video_id": video_id}))
    return correction


def change_correction(session: Session, video_id: str, changed: Correction) -> None:
    """Update the correction of that number: undone, or about fewer characters."""
    where = and_(CorrectionRow.video_id == video_id, CorrectionRow.number == changed.number)
    session.execute(update(CorrectionRow).where(where).values(_values(changed)))


def _values(correction: Correction) -> dict[str, Any]:
    """Return the columns of what may change."""
    return {
        "told": correction.told,
        "numbers": list(correction.numbers),
        "outcomes": [outcome.model_dump(mode="json") for outcome in correction.outcomes],
        "undone": correction.undone,
    }


def _correction(row: CorrectionRow) -> Correction:
    return Correction(
        number=row.number,
        kind=CorrectionKind(row.kind),
        told=row.told,
        numbers=tuple(row.numbers),
        outcomes=tuple(CorrectedCharacter.model_validate(outcome) for outcome in row.outcomes),
        undone=row.undone,
        act=row.act,
        video=row.video_id,
    )


def claims_of(session: Session, video_id: str, last_clip: int) -> list[Claim]:
    """Return the total support of each face and voice until a clip, with the latest reason."""
    row = IdentityStatementRow
    last = func.max(row.id)
    totals = (
        select(row.face_id, row.voice_id, func.sum(row.support).label("total"), last.label("last"))
        .where(row.video_id == video_id, row.clip <= last_clip)
        .group_by(row.face_id, row.voice_id)
        .subquery()
    )
    query = (
        select(totals.c.face_id, totals.c.voice_id, totals.c.total, row.reason)
        .join(row, row.id == totals.c.last)
        .order_by(totals.c.last)
    )
    return [Claim._make(fields) for fields in session.execute(query)]


def appearances_of(
    session: Session, video_id: str, identities: Sequence[int], last_clip: int
) -> dict[int, tuple[int, TimeSpan]]:
    """Return how often and from when to when each was seen until a clip, or heard if never seen."""
    appearances: dict[int, tuple[int, TimeSpan]] = {}
    for table in (UtteranceRow, SightingRow):
        query = select(
            table.identity_id, func.count(), func.min(table.start_ms), func.max(table.end_ms)
        )
        query = query.where(table.video_id == video_id, table.clip <= last_clip)
        query = query.where(is_any_of(table.identity_id, identities)).group_by(table.identity_id)
        appearances |= {
            identity or 0: (count, TimeSpan.of(start, end))
            for identity, count, start, end in session.execute(query)
        }
    return appearances
