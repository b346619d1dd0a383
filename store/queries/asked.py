"""What was asked about a video, as plain records."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Text, cast, func, select
from sqlalchemy.orm import Session

from store.queries.records import Query, Record
from store.schema import (
    MessageRow,
    ModelCallRow,
    QuestionRow,
    TrajectoryEventRow,
    TrajectoryRow,
    TrajectoryVideoRow,
)


def asked_of(session: Session, video_id: str) -> Iterator[Record]:
    """Trajectories that looked at a video, by start, with all they consist of.

    The messages of the video's own model calls are among those at the end.
    """
    looked = select(TrajectoryVideoRow.trajectory_id).where(TrajectoryVideoRow.video_id == video_id)
    for kind, query in (
        ("trajectory", _trajectories(looked)),
        ("trajectory_video", _views(looked)),
        ("trajectory_event", _events(looked)),
        ("trajectory_call", _calls(looked)),
        ("message", _messages(looked, video_id)),
    ):
        for row in session.execute(query.execution_options(yield_per=1000)).mappings():
            yield {"row": kind, **row}


def _trajectories(looked: Query) -> Query:
    t, q = TrajectoryRow, QuestionRow
    asked = (q.text.label("question"), q.options, q.as_of_ms, q.type)
    ran = (t.machine, t.profile, t.state, t.answer, t.tokens, t.seconds)
    query = select(t.id, *asked, *ran, cast(t.started_at, Text).label("started_at"))
    return query.join(q, q.id == t.question_id).where(t.id.in_(looked)).order_by(t.started_at, t.id)


def _views(looked: Query) -> Query:
    v = TrajectoryVideoRow
    query = select(v.trajectory_id, v.video_id, v.last_clip).where(v.trajectory_id.in_(looked))
    return query.order_by(v.trajectory_id, v.video_id)


def _events(looked: Query) -> Query:
    e = TrajectoryEventRow
    at = cast(e.at, Text).label("at")
    query = select(e.trajectory_id, e.seq, e.kind, e.payload, at, e.step)
    return query.where(e.trajectory_id.in_(looked)).order_by(e.trajectory_id, e.seq)


def _calls(looked: Query) -> Query:
    c = ModelCallRow
    asked = (c.trajectory_id, c.purpose, c.request_hash, c.profile, c.model, c.messages)
    replied = (c.reply, c.error, c.tokens_in, c.tokens_out, c.cost_usd, c.ms)
    query = select(*asked, *replied).where(c.trajectory_id.in_(looked))
    return query.order_by(c.trajectory_id, c.id)


def _messages(looked: Query, video_id: str) -> Query:
    c = ModelCallRow
    used = select(func.unnest(c.messages))
    used = used.where(c.trajectory_id.in_(looked) | (c.video_id == video_id))
    return (
        select(MessageRow.hash, MessageRow.content)
        .where(MessageRow.hash.in_(used))
        .order_by(MessageRow.hash)
    )
