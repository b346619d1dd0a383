"""Alerts: what they ask, the clips and segments that wait to be judged, and what answered."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from sqlalchemy import text
from sqlalchemy.orm import Session

from domain.alerts import MAX_ALERTS, Alert, AlertKind, DeliveryState, Hit
from domain.errors import InputError, NotFound
from domain.time import TimeSpan
from store.queries.search import StoredLine
from store.queries.videos import WATCHING

_ALERTS = """
    SELECT a.id, a.name, a.kind, a.question, a.video_id AS video, v.title, a.threshold,
        a.debounce_ms, a.delivery, a.made_at,
        (SELECT count(*) FROM alert_hits AS h WHERE h.alert_id = a.id) AS hits
    FROM alerts AS a LEFT JOIN videos AS v ON v.id = a.video_id
"""
_HITS = """
    SELECT h.id, a.name AS alert, a.kind, a.question, h.video_id AS video, v.title, h.clip,
        json_build_object('start_ms', h.start_ms, 'end_ms', h.end_ms) AS span, h.score,
        h.memory_id AS memory, h.identity_id AS identity, h.segment_id AS segment,
        h.keyframe_id AS keyframe, h.state, h.error, h.at AS recorded,
        to_timestamp((s.began_ms + h.start_ms) / 1000.0) AS at
    FROM alert_hits AS h JOIN alerts AS a ON a.id = h.alert_id JOIN videos AS v ON v.id = h.video_id
        LEFT JOIN streams AS s ON s.video_id = h.video_id
"""


def add_alert(session: Session, alert: Alert) -> None:
    """Add an alert.

    Raises:
        InputError: there is one of that name, or there are too many.
    """
    if (session.scalar(text("SELECT count(*) FROM alerts")) or 0) >= MAX_ALERTS:
        raise InputError(f"there are {MAX_ALERTS} alerts: remove one first")
    add = """
        INSERT INTO alerts (id, name, kind, question, video_id, threshold, debounce_ms, delivery)
        VALUES (:id, :name, :kind, :question, :video, :threshold, :debounce_ms, :delivery)
        ON CONFLICT DO NOTHING RETURNING id
    """
    if session.scalar(text(add), dict(alert)) is None:
        raise InputError(f"there is an alert {alert.name} already: homer alert remove {alert.name}")


def list_alerts(session: Session, video: str | None = None) -> list[Alert]:
    """Return the alerts by name; those about a video, if one is given."""
    of_video = "WHERE a.video_id IS NULL OR a.video_id = :video" if video else ""
    rows = session.execute(text(f"{_ALERTS} {of_video} ORDER BY a.name"), {"video": video})
    return [Alert.model_validate(dict(row)) for row in rows.mappings()]


def find_alert(session: Session, name: str) -> Alert:
    """Return the alert of that name.

    Raises:
        NotFound: there is none.
    """
    row = (
        session.execute(text(f"{_ALERTS} WHERE a.name = :name"), {"name": name}).mappings().first()
    )
    if row is None:
        raise NotFound(f"there is no alert {name!r}: homer alert list")
    return Alert.model_validate(dict(row))


def remove_alert(session: Session, alert: str) -> None:
    """Remove an alert by id, with its hits."""
    session.execute(text("DELETE FROM alerts WHERE id = :id"), {"id": alert})


class WaitingClip(NamedTuple):
    """A clip to be judged, or the segments that were written after it."""

    video: str
    clip: int
    segments: bool = False


def queue_clip(session: Session, video: str, clip: int) -> None:
    """Note that a clip is to be judged, if there is an alert about its video."""
    # It is called in the transaction that stores the clip, so that no clip is missed.
    queue = """
        INSERT INTO alert_clips (video_id, clip) SELECT :video, :clip
        WHERE EXISTS (SELECT FROM alerts WHERE video_id IS NULL OR video_id = :video)
        ON CONFLICT DO NOTHING
    """
    session.execute(text(queue), {"video": video, "clip": clip})


def queue_segments(session: Session, video: str, clip: int) -> None:
    """Note that the segments written after a clip are to be judged, if its video is being watched.

    It is called in the transaction that stores them.
    """
    # Those of a video that was watched earlier are not judged: what happened there is long past.
    queue = """
        INSERT INTO alert_clips (video_id, clip, segments) SELECT id, :clip, true
        FROM videos WHERE id = :video AND state = :watching
            AND EXISTS (SELECT FROM alerts WHERE video_id IS NULL OR video_id = :video)
        ON CONFLICT DO NOTHING
    """
    session.execute(text(queue), {"video": video, "clip": clip, "watching": WATCHING})


def waiting_clips(session: Session, attempts: int) -> list[WaitingClip]:
    """Return the clips to be judged that were tried less than ``attempts`` times, in order."""
    query = """
        SELECT video_id, clip, segments FROM alert_clips WHERE attempts < :attempts
        ORDER BY video_id, clip, segments
    """
    return [WaitingClip._make(row) for row in session.execute(text(query), {"attempts": attempts})]


_IS = "video_id = :video AND clip = :clip AND segments = :segments"


def count_attempt(session: Session, waiting: WaitingClip) -> None:
    count = f"UPDATE alert_clips SET attempts = attempts + 1 WHERE {_IS}"
    session.execute(text(count), waiting._asdict())


def take_clip(session: Session, waiting: WaitingClip) -> bool:
    """Take a clip off those that wait; return False if another process did."""
    # Until this transaction ends no other one judges clips of the video, so that each sees the hits
    # of the other.
    lock = "SELECT FROM alert_clips WHERE video_id = :video ORDER BY clip, segments FOR UPDATE"
    session.execute(text(lock), waiting._asdict()).all()
    take = f"DELETE FROM alert_clips WHERE {_IS} RETURNING clip"
    return session.scalar(text(take), waiting._asdict()) is not None


JudgedRow = tuple[StoredLine, Any]
"""A line or the description of a keyframe, and its vector as a list."""


def lines_of_clip(session: Session, video: str, clip: int) -> list[JudgedRow]:
    """Return the lines of a clip by time."""
    query = """
        SELECT id, clip, start_ms, end_ms, kind, text, source, speaker, NULL,
            CAST(embedding AS real[]) FROM memories
        WHERE video_id = :video AND clip = :clip ORDER BY start_ms, id
    """
    return _judged(session, query, video, clip)


def described_frames(session: Session, video: str, clip: int) -> list[JudgedRow]:
    """Return the keyframes of a clip that have a description, by time."""
    query = """
        SELECT id, clip, time_ms, time_ms, '', description, '', NULL, NULL,
            CAST(description_embedding AS real[]) FROM keyframes
        WHERE video_id = :video AND clip = :clip AND description IS NOT NULL ORDER BY time_ms, id
    """
    return _judged(session, query, video, clip)


def _judged(session: Session, query: str, video: str, clip: int) -> list[JudgedRow]:
    rows = session.execute(text(query), {"video": video, "clip": clip})
    return [(StoredLine._make(row[:-1]), row[-1]) for row in rows]


def faces_of_clip(session: Session, video: str, clip: int) -> list[tuple[int, TimeSpan]]:
    """Return the identity and span of each face of a clip once, by when it was first seen."""
    query = """
        SELECT identity_id, min(start_ms), max(greatest(start_ms, end_ms)) FROM sightings AS s
            JOIN identities AS i ON i.id = s.identity_id
        WHERE s.video_id = :video AND s.clip = :clip AND i.kind = 'face'
        GROUP BY identity_id ORDER BY 2, 1
    """
    rows = session.execute(text(query), {"video": video, "clip": clip})
    return [(identity, TimeSpan.of(start, end)) for identity, start, end in rows]


def add_hits(session: Session, found: Sequence[tuple[Alert, Hit]]) -> list[str]:
    """Record hits of one clip, one an alert; return the ids of those that were recorded.

    A hit within the debounce time of another of its alert is none. Each unknown face has a
    debounce time of its own.
    """
    near = """
        SELECT 1 FROM alert_hits WHERE alert_id = :alert AND video_id = :video
            AND (CAST(:face AS bigint) IS NULL OR identity_id = :face) AND start_ms < :until_ms
            AND :from_ms < CASE WHEN segment_id IS NULL THEN start_ms ELSE end_ms END
        LIMIT 1
    """
    add = """
        INSERT INTO alert_hits (id, alert_id, video_id, clip, start_ms, end_ms, score,
            memory_id, identity_id, segment_id, keyframe_id, state)
        VALUES (:id, :alert, :video, :clip, :start_ms, :end_ms, :score, :memory, :identity,
            :segment, :keyframe, :state)
    """
    added = dict[str, str]()
    for alert, hit in found:
        if alert.id in added:
            continue
        face = hit.identity if alert.kind is AlertKind.UNKNOWN_FACE else None
        asked = {
            "alert": alert.id,
            "video": hit.video,
            "face": face,
            "from_ms": hit.extent.start_ms - alert.debounce_ms,
            "until_ms": hit.extent.end_ms + alert.debounce_ms,
        }
        if not alert.debounce_ms or session.scalar(text(near), asked) is None:
            session.execute(text(add), {**dict(hit), **dict(hit.span), "alert": alert.id})
            added[alert.id] = hit.id
    return [*added.values()]


def delete_hits_of(session: Session, video: str, clips: Collection[int]) -> None:
    """Delete the hits of clips and of segments with any of them; let the clips wait no more."""
    parameters = {"video": video, "clips": sorted(clips)}
    hits = """
        DELETE FROM alert_hits AS h WHERE video_id = :video AND
            CASE WHEN segment_id IS NULL THEN clip = ANY(:clips) ELSE EXISTS (
                SELECT FROM segment_revisions AS r WHERE r.segment_id = h.segment_id
                AND r.clips && CAST(:clips AS bigint[])) END
    """
    session.execute(text(hits), parameters)
    waiting = (
        "DELETE FROM alert_clips WHERE video_id = :video AND clip = ANY(:clips) AND NOT segments"
    )
    session.execute(text(waiting), parameters)


def hits_page(
    session: Session,
    offset: int,
    limit: int,
    alert: str | None = None,
    video: str | None = None,
    last_clip: int | None = None,
) -> tuple[list[Hit], int]:
    """Return a page of the hits, the latest first, and how many there are.

    Args:
        offset: Hits to skip.
        limit: Hits at most.
        alert: The name of the only alert.
        video: The id of the only video.
        last_clip: Only hits of clips up to this one.
    """
    wanted = {"alert": alert, "video": video, "last_clip": last_clip}
    conditions = {
        "alert": "a.name = :alert",
        "video": "h.video_id = :video",
        "last_clip": "h.clip <= :last_clip",
    }
    given = (conditions[name] for name, value in wanted.items() if value is not None)
    where = " AND ".join(given) or "true"
    total = session.scalar(text(f"SELECT count(*) FROM ({_HITS} WHERE {where}) AS found"), wanted)
    page = f"{_HITS} WHERE {where} ORDER BY h.at DESC, h.id OFFSET :offset LIMIT :limit"
    rows = session.execute(text(page), wanted | {"offset": offset, "limit": limit})
    return [Hit.model_validate(dict(row)) for row in rows.mappings()], total or 0


def waiting_hits(session: Session, alerts: Collection[str]) -> list[tuple[str, Hit]]:
    """Return the hits of these alerts that wait to be delivered, with the alert's id, by age."""
    query = f"SELECT found.*, w.alert_id FROM ({_HITS}) AS found JOIN alert_hits AS w USING (id)"
    query += " WHERE w.state = 'waiting' AND w.alert_id = ANY(:alerts) ORDER BY w.at, w.id"
    rows = [dict(row) for row in session.execute(text(query), {"alerts": [*alerts]}).mappings()]
    return [(row.pop("alert_id"), Hit.model_validate(row)) for row in rows]


def count_hits(session: Session, state: DeliveryState) -> int:
    """Return how many hits are in a state of delivery, from whatever machine."""
    count = "SELECT count(*) FROM alert_hits WHERE state = :state"
    return session.scalar(text(count), {"state": state}) or 0


def settle_hit(session: Session, hit: str, state: DeliveryState, error: str | None) -> None:
    """Record what came of delivering a hit."""
    settle = "UPDATE alert_hits SET state = :state, error = :error WHERE id = :id"
    session.execute(text(settle), {"id": hit, "state": state, "error": error})
