"""Alerts: what they ask, the clips and segments that wait to be judged, and events to deliver."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    case,
    cast,
    delete,
    exists,
    func,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from domain.alerts import MAX_ALERTS, Alert, AlertEvent, AlertKind, DeliveryKind, DeliveryState
from domain.errors import InputError, NotFound
from domain.media import IdentityKind
from domain.time import TimeSpan
from store.queries.identities import AppearanceSpan
from store.queries.search import LINE_COLUMNS, StoredLine
from store.queries.videos import WATCHING
from store.tables.schema import (
    AlertClipRow,
    AlertEventRow,
    AlertRow,
    IdentityRow,
    KeyframeRow,
    MemoryRow,
    SegmentRevisionRow,
    SightingRow,
)


def add_alert(session: Session, alert: Alert) -> None:
    """Add an alert.

    Raises:
        InputError: there is one of that name, or there are too many.
    """
    if (session.scalar(select(func.count()).select_from(AlertRow)) or 0) >= MAX_ALERTS:
        raise InputError(f"there are {MAX_ALERTS} alerts: remove one first")
    values = alert.model_dump(exclude={"video", "made_at"}) | {"video_id": alert.video}
    added = insert(AlertRow).values(values).on_conflict_do_nothing().returning(AlertRow.id)
    if session.scalar(added) is None:
        raise InputError(f"there is an alert {alert.name} already: homer alert remove {alert.name}")


def list_alerts(session: Session, video: str | None = None) -> list[Alert]:
    """Return the alerts by name; those about a video, if one is given."""
    row = AlertRow
    about = or_(row.video_id.is_(None), row.video_id == video)
    query = select(row) if video is None else select(row).where(about)
    return [_alert(found) for found in session.scalars(query.order_by(row.name))]


def find_alert(session: Session, name: str) -> Alert:
    """Return the alert of that name.

    Raises:
        NotFound: there is none.
    """
    row = session.scalar(select(AlertRow).where(AlertRow.name == name))
    if row is None:
        raise NotFound(f"there is no alert {name!r}: homer alert list")
    return _alert(row)


def remove_alert(session: Session, alert: str) -> None:
    """Remove an alert by id, with its events."""
    session.execute(delete(AlertRow).where(AlertRow.id == alert))


def _alert(row: AlertRow) -> Alert:
    return Alert(
        id=row.id,
        name=row.name,
        kind=AlertKind(row.kind),
        question=row.question,
        video=row.video_id,
        threshold=row.threshold,
        debounce_ms=row.debounce_ms,
        delivery=None if row.delivery is None else DeliveryKind(row.delivery),
        made_at=row.made_at,
    )


def queue_clip(session: Session, video: str, clip: int) -> None:
    """Note that a clip is to be judged, if there is an alert about its video.

    It is called in the transaction that stores the clip, so that no clip is missed.
    """
    session.execute(_QUEUE, {"video": video, "clip": clip})


_QUEUE = text("""
    INSERT INTO alert_clips (video_id, clip) SELECT :video, :clip
    WHERE EXISTS (SELECT FROM alerts WHERE video_id IS NULL OR video_id = :video)
    ON CONFLICT DO NOTHING
""")


def queue_segments(session: Session, video: str, clip: int) -> None:
    """Note that the segments written after a clip are to be judged, if its video is being watched.

    It is called in the transaction that stores them. Those of a video that was watched earlier
    are not judged: what happened there is long past.
    """
    session.execute(_QUEUE_SEGMENTS, {"video": video, "clip": clip, "watching": WATCHING})


_QUEUE_SEGMENTS = text("""
    INSERT INTO alert_clips (video_id, clip, segments) SELECT id, :clip, true
    FROM videos WHERE id = :video AND state = :watching
        AND EXISTS (SELECT FROM alerts WHERE video_id IS NULL OR video_id = :video)
    ON CONFLICT DO NOTHING
""")


class WaitingClip(NamedTuple):
    """A clip to be judged, or the segments that were written after it."""

    video: str
    clip: int
    segments: bool = False


def waiting_clips(session: Session, limit: int, attempts: int) -> list[WaitingClip]:
    """Return clips to be judged that were tried less than ``attempts`` times, in order."""
    row = AlertClipRow
    order = (row.video_id, row.clip, row.segments)
    rows = session.execute(
        select(*order).where(row.attempts < attempts).order_by(*order).limit(limit)
    )
    return [WaitingClip(*found) for found in rows]


def count_waiting_clips(session: Session, attempts: int) -> int:
    """Return how many clips are to be judged that were tried less than ``attempts`` times."""
    row = AlertClipRow
    query = select(func.count()).select_from(row).where(row.attempts < attempts)
    return session.scalar(query) or 0


def count_attempt(session: Session, waiting: WaitingClip) -> None:
    """Count a failed attempt at judging a clip."""
    row = AlertClipRow
    session.execute(update(row).where(*_is(waiting)).values(attempts=row.attempts + 1))


def take_clip(session: Session, waiting: WaitingClip) -> bool:
    """Take a clip off those that wait; return False if another process did.

    Until this transaction ends no other one judges clips of the video, so that each sees the
    events of the other.
    """
    row = AlertClipRow
    of_video = select(row.clip).where(row.video_id == waiting.video)
    session.execute(of_video.order_by(row.clip, row.segments).with_for_update()).all()
    taken = delete(row).where(*_is(waiting)).returning(row.clip)
    return session.scalar(taken) is not None


def _is(waiting: WaitingClip) -> tuple[ColumnElement[bool], ...]:
    row = AlertClipRow
    return row.video_id == waiting.video, row.clip == waiting.clip, row.segments == waiting.segments


class EmbeddedLine(NamedTuple):
    """A line of a clip with its vector, shape (D,), and the encoder that made it."""

    line: StoredLine
    vector: Any
    encoder: str | None


def lines_of_clip(session: Session, video: str, clip: int) -> list[EmbeddedLine]:
    """Return the lines of a clip by time."""
    row = MemoryRow
    query = select(*LINE_COLUMNS, row.embedding, row.encoder)
    query = query.where(row.video_id == video, row.clip == clip)
    rows = session.execute(query.order_by(row.start_ms, row.id))
    return [EmbeddedLine(StoredLine._make(found[:-2]), *found[-2:]) for found in rows]


class DescribedFrame(NamedTuple):
    """A keyframe of a clip, what it shows, the vector of that text, and who made it."""

    id: int
    time_ms: int
    description: str
    vector: Any
    encoder: str | None


def described_frames(session: Session, video: str, clip: int) -> list[DescribedFrame]:
    """Return the keyframes of a clip that have a description, by time."""
    row = KeyframeRow
    columns = (row.description_embedding, row.description_encoder)
    query = select(row.id, row.time_ms, row.description, *columns)
    query = query.where(row.video_id == video, row.clip == clip, row.description.is_not(None))
    rows = session.execute(query.order_by(row.time_ms, row.id))
    return [DescribedFrame._make(found) for found in rows]


def faces_of_clip(session: Session, video: str, clip: int) -> list[AppearanceSpan]:
    """Return each face of a clip once, by when it was first seen."""
    seen, of = SightingRow, IdentityRow
    first = func.min(seen.start_ms)
    query = (
        select(seen.identity_id, first, func.max(seen.end_ms))
        .join(of, of.id == seen.identity_id)
        .where(seen.video_id == video, seen.clip == clip, of.kind == IdentityKind.FACE)
        .group_by(seen.identity_id)
    )
    rows = session.execute(query.order_by(first, seen.identity_id))
    return [AppearanceSpan(*row) for row in rows]


@dataclass(frozen=True)
class Match:
    """What answers an alert: a line, a keyframe or a face of a clip, or a segment, by its id."""

    alert: Alert
    span: TimeSpan
    score: float
    memory: int | None = None
    identity: int | None = None
    segment: int | None = None
    keyframe: int | None = None

    @property
    def extent(self) -> TimeSpan:
        """What debouncing counts from: all of a segment, else the moment at which it begins."""
        start_ms = self.span.start_ms
        return self.span if self.segment is not None else TimeSpan.of(start_ms, start_ms)


def add_events(session: Session, waiting: WaitingClip, matches: Sequence[Match]) -> int:
    """Record matches of a clip, one an alert; return how many were recorded.

    A match within the debounce time of an event of its alert is none. Each unknown face has a
    debounce time of its own.
    """
    known = _events_near(session, waiting, matches)
    found: dict[str, Match] = {}
    for match in matches:
        face = match.identity if match.alert.kind is AlertKind.UNKNOWN_FACE else None
        earlier = known.get((match.alert.id, face), ())
        if not any(_gap_ms(match.extent, one) < match.alert.debounce_ms for one in earlier):
            found.setdefault(match.alert.id, match)
    rows = [_event_values(waiting, match) for match in found.values()]
    if rows:
        session.execute(insert(AlertEventRow), rows)
    return len(rows)


def _gap_ms(one: TimeSpan, other: TimeSpan) -> int:
    """Return the time between two spans; 0 where they overlap."""
    return max(0, one.start_ms - other.end_ms, other.start_ms - one.end_ms)


def _events_near(
    session: Session, waiting: WaitingClip, matches: Sequence[Match]
) -> dict[tuple[str, int | None], list[TimeSpan]]:
    """Return the extents of events within the longest debounce time, by alert and face."""
    extents = [match.extent for match in matches]
    longest = max((match.alert.debounce_ms for match in matches), default=0)
    if not longest:
        return {}
    row = AlertEventRow
    end_ms = case((row.segment_id.is_not(None), row.end_ms), else_=row.start_ms)
    query = select(row.alert_id, AlertRow.kind, row.identity_id, row.start_ms, end_ms)
    query = query.join(AlertRow, AlertRow.id == row.alert_id).where(
        row.video_id == waiting.video,
        row.start_ms <= max(extent.end_ms for extent in extents) + longest,
        end_ms >= min(extent.start_ms for extent in extents) - longest,
    )
    found: dict[tuple[str, int | None], list[TimeSpan]] = {}
    for alert, kind, identity, *extent in session.execute(query):
        face = identity if kind == AlertKind.UNKNOWN_FACE else None
        found.setdefault((alert, face), []).append(TimeSpan.of(*extent))
    return found


def _event_values(waiting: WaitingClip, match: Match) -> dict[str, Any]:
    alert = match.alert
    return {
        "id": uuid.uuid4().hex,
        "alert_id": alert.id,
        "video_id": waiting.video,
        "clip": waiting.clip,
        "start_ms": match.span.start_ms,
        "end_ms": match.span.end_ms,
        "score": match.score,
        "memory_id": match.memory,
        "identity_id": match.identity,
        "segment_id": match.segment,
        "keyframe_id": match.keyframe,
        "state": DeliveryState.RECORDED if alert.delivery is None else DeliveryState.WAITING,
    }


def delete_events_of(session: Session, video: str, clips: Collection[int]) -> None:
    """Delete the events of clips and of segments with any of them; let the clips wait no more."""
    event, waiting, revision = AlertEventRow, AlertClipRow, SegmentRevisionRow
    of_clips = cast(sorted(clips), ARRAY(BigInteger))
    has_clips = revision.clips.bool_op("&&")(of_clips)
    of_segments = exists().where(revision.segment_id == event.segment_id, has_clips)
    own = event.segment_id.is_(None) & event.clip.in_(clips)
    session.execute(delete(event).where(event.video_id == video, own | of_segments))
    of_waiting = (waiting.clip.in_(clips), ~waiting.segments)
    session.execute(delete(waiting).where(waiting.video_id == video, *of_waiting))


def events_page(
    session: Session,
    offset: int,
    limit: int,
    alert: str | None = None,
    video: str | None = None,
    last_clip: int | None = None,
) -> tuple[list[AlertEvent], int]:
    """Return a page of the events, the latest first, and how many there are.

    Args:
        offset: Events to skip.
        limit: Events at most.
        alert: The id of the only alert.
        video: The id of the only video.
        last_clip: Only events of clips up to this one.
    """
    row = AlertEventRow
    filters = {row.alert_id: alert, row.video_id: video}
    where = [column == value for column, value in filters.items() if value is not None]
    if last_clip is not None:
        where.append(row.clip <= last_clip)
    total = session.scalar(select(func.count()).select_from(row).where(*where)) or 0
    query = select(row, AlertRow).join(AlertRow, AlertRow.id == row.alert_id).where(*where)
    rows = session.execute(query.order_by(row.at.desc(), row.id).offset(offset).limit(limit))
    return [_event(event, alert_row) for event, alert_row in rows], total


def count_events(session: Session) -> dict[str, int]:
    """Return how many events each alert has, by its id."""
    row = AlertEventRow
    query = select(row.alert_id, func.count()).group_by(row.alert_id)
    return dict(session.execute(query).all())


def _event(row: AlertEventRow, alert: AlertRow) -> AlertEvent:
    return AlertEvent(
        id=row.id,
        alert=_alert(alert),
        video=row.video_id,
        clip=row.clip,
        span=TimeSpan.of(row.start_ms, row.end_ms),
        score=row.score,
        memory=row.memory_id,
        identity=row.identity_id,
        segment=row.segment_id,
        keyframe=row.keyframe_id,
        state=DeliveryState(row.state),
        attempts=row.attempts,
        error=row.error,
        at=row.at,
    )


_CLAIM = text("""
    WITH due AS (
        SELECT id, row_number() OVER (PARTITION BY alert_id ORDER BY next_at, at, id) AS place
        FROM alert_events
        WHERE state = 'waiting' AND next_at <= now() AND alert_id = ANY(:alerts))
    UPDATE alert_events SET attempts = attempts + 1, next_at = now() + :lease
    WHERE id IN (
        SELECT e.id FROM alert_events AS e JOIN due ON due.id = e.id
        WHERE due.place = 1 AND e.state = 'waiting' AND e.next_at <= now()
        ORDER BY e.next_at, e.id LIMIT :most FOR UPDATE OF e SKIP LOCKED)
    RETURNING id
""")


def claim_events(
    session: Session, alerts: Sequence[str], most: int, lease_s: float
) -> list[AlertEvent]:
    """Claim events that are due, the first of each of these alerts, for ``lease_s`` seconds.

    If the process is killed, they are due again after that time.
    """
    lease = timedelta(seconds=lease_s)
    parameters = {"alerts": list(alerts), "most": most, "lease": lease}
    ids = list(session.scalars(_CLAIM, parameters))
    row = AlertEventRow
    query = select(row, AlertRow).join(AlertRow, AlertRow.id == row.alert_id)
    rows = session.execute(query.where(row.id.in_(ids)).order_by(row.at, row.id))
    return [_event(event, alert) for event, alert in rows]


def count_waiting_events(session: Session) -> int:
    """Return how many events wait to be delivered, from whatever machine."""
    waiting = AlertEventRow.state == DeliveryState.WAITING
    return session.scalar(select(func.count()).select_from(AlertEventRow).where(waiting)) or 0


def settle_event(
    session: Session, event: str, state: DeliveryState, error: str | None = None
) -> None:
    """Record that an event was delivered, or that it never will be."""
    row = AlertEventRow
    session.execute(update(row).where(row.id == event).values(state=state, error=error))


def postpone_events(session: Session, event: AlertEvent, wait_s: float, error: str) -> None:
    """Let an event, and all others of its alert, wait for so long before they are delivered."""
    row = AlertEventRow
    at = func.now() + timedelta(seconds=wait_s)
    others = (row.alert_id == event.alert.id, row.state == DeliveryState.WAITING, row.next_at < at)
    session.execute(update(row).where(*others).values(next_at=at))
    session.execute(update(row).where(row.id == event.id).values(next_at=at, error=error))
