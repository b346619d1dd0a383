"""Questions, trajectories with their events, and calls to language models."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, NamedTuple

from psycopg import Connection, Cursor
from sqlalchemy import (
    ColumnElement,
    Select,
    and_,
    any_,
    cast,
    delete,
    func,
    select,
    text,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql import JSONPATH, distinct_on, insert
from sqlalchemy.orm import Session

from domain.asking import Answer, Question
from domain.calls import CallRecord, CallTotals
from domain.errors import Ambiguous, NotFound
from domain.memories import MemoryView, Scope
from domain.moments import SearchCost
from domain.rights import Deed
from domain.trajectory import EVENT, Event, Forked
from domain.words import make_storable
from store.advisory_locks import TRAJECTORIES, claimed_condition
from store.migrations import VIEWER, recording
from store.queries.videos import lock_videos_for_share
from store.tables.schema import (
    AuditRow,
    MessageRow,
    ModelCallRow,
    QuestionRow,
    TrajectoryEventRow,
    TrajectoryRow,
    TrajectoryVideoRow,
)


@dataclass(frozen=True)
class StoredTrajectory:
    """A trajectory's row. ``state``: running, done, stopped or failed."""

    id: str
    question: Question
    view: MemoryView
    machine: str
    profile: str
    state: str
    answer: Answer | None
    tokens: int
    seconds: float
    started_at: datetime


def add_trajectory(
    session: Session,
    trajectory: str,
    question: Question,
    view: MemoryView,
    machine: str,
    profile: str,
) -> None:
    """Store the question and add a trajectory over ``view`` in state ``running``.

    A viewer's is on record as that viewer's.

    Raises:
        NotFound: A video of the view was deleted meanwhile.
    """
    row = QuestionRow(
        text=question.text,
        options=list(question.options),
        as_of_ms=question.as_of_ms,
        type=question.type,
    )
    values: dict[str, Any] = {"id": trajectory, "machine": machine, "profile": profile}
    scopes = [
        {"trajectory_id": trajectory, "video_id": s.video, "last_clip": s.last_clip}
        for s in view.scopes
    ]
    viewer = session.info.get(VIEWER)
    with recording(session):
        lock_videos_for_share(session, [scope.video for scope in view.scopes])
        session.add(row)
        session.flush()
        values |= {"question_id": row.id, "viewer": viewer}
        begun = insert(TrajectoryRow).values(state="running", tokens=0, seconds=0.0, **values)
        session.execute(begun)
        session.execute(insert(TrajectoryVideoRow), scopes)


def trajectory_exists(session: Session, trajectory: str) -> bool:
    return session.get(TrajectoryRow, trajectory) is not None


class Mark(NamedTuple):
    """When an event happened, at which step of the machine, and after how many seconds of it."""

    at: datetime
    step: str = ""
    clock: float = 0.0


def append_events(
    connection: Connection[Any] | Cursor[Any],
    trajectory: str,
    first: int,
    events: Sequence[Event],
    marks: Sequence[Mark] = (),
) -> None:
    """Append ``events`` as ``first``, ``first + 1``...; an existing number is an error.

    One statement over psycopg, in the caller's transaction: a run appends at every step. ``marks``
    has one entry an event; without marks they happened now.
    """
    if not events:
        return
    now = datetime.now(UTC)
    records = [
        f'{{"kind":"{event.kind}","payload":{event.model_dump_json()},'
        f'"at":"{mark.at.isoformat()}","step":{json.dumps(mark.step)},"clock":{mark.clock}}}'
        for event, mark in zip(events, marks or [Mark(now)] * len(events), strict=True)
    ]
    connection.execute(_APPEND, (trajectory, first, f"[{','.join(records)}]"))


_APPEND = """
INSERT INTO trajectory_events (trajectory_id, seq, kind, payload, at, step, clock)
SELECT %s, %s + n - 1, event ->> 'kind', event -> 'payload', (event ->> 'at')::timestamptz,
    event ->> 'step', (event ->> 'clock')::float
FROM jsonb_array_elements(%s::jsonb) WITH ORDINALITY AS told (event, n)
"""


def marks_of(session: Session, trajectory: str) -> list[Mark]:
    """Return the marks of all events of a trajectory, in order."""
    event = TrajectoryEventRow
    query = select(event.at, event.step, event.clock).where(event.trajectory_id == trajectory)
    query = query.order_by(event.seq)
    return [Mark._make(row) for row in session.execute(query)]


def delete_events(session: Session, trajectory: str, first: int) -> None:
    """Delete events from ``first`` on: those of a step that a crash cut off."""
    event = TrajectoryEventRow
    later = delete(event).where(event.trajectory_id == trajectory, event.seq >= first)
    with recording(session):
        session.execute(later)


def events_of(session: Session, trajectory: str) -> list[Event]:
    """Return all events of a trajectory, in order."""
    event = TrajectoryEventRow
    query = select(event.payload).where(event.trajectory_id == trajectory).order_by(event.seq)
    return [EVENT.validate_python(payload) for payload in session.scalars(query)]


def end_trajectory(
    session: Session,
    trajectory: str,
    state: str,
    answer: Answer | None,
    tokens: int,
    seconds: float,
) -> None:
    """Close a trajectory with its answer, tokens and seconds."""
    values = {
        "state": state,
        "answer": answer.model_dump(mode="json") if answer else None,
        "tokens": tokens,
        "seconds": seconds,
    }
    ended = update(TrajectoryRow).where(TrajectoryRow.id == trajectory).values(**values)
    with recording(session):
        session.execute(ended)


def reopen_trajectory(session: Session, trajectory: str) -> None:
    """Set an interrupted trajectory to running again."""
    row = TrajectoryRow
    with recording(session):
        session.execute(update(row).where(row.id == trajectory).values(state="running"))


def find_trajectory(session: Session, name: str) -> StoredTrajectory:
    """Return the trajectory with that id or unambiguous prefix.

    Raises:
        NotFound: No trajectory's id begins with ``name``.
        Ambiguous: Several do.
    """
    name = make_storable(name)
    match = TrajectoryRow.id.startswith(name, autoescape=True) if name else TrajectoryRow.id == ""
    rows = session.execute(_trajectories().where(match).order_by(TrajectoryRow.id).limit(3)).all()
    exact = [row for row in rows if row[0].id == name]
    matches = exact or rows
    if not matches:
        raise NotFound(f"no trajectory goes by {name!r}: 'homer trajectory' lists them")
    if len(matches) > 1:
        raise Ambiguous(f"several trajectories begin with {name!r}: give more of the id")
    trajectory = _trajectory(session, matches[0][0], matches[0][1])
    if trajectory is None:
        raise NotFound(f"{name!r} was deleted just now, with its video")
    return trajectory


def list_trajectories(
    session: Session, limit: int = 50, offset: int = 0, words: str = ""
) -> list[StoredTrajectory]:
    """Return trajectories, newest first; ``words``: only those with them in the question."""
    newest = _trajectories().where(*_question_has(words))
    newest = newest.order_by(TrajectoryRow.started_at.desc(), TrajectoryRow.id)
    rows = session.execute(newest.limit(limit).offset(offset)).all()
    trajectories = (_trajectory(session, t, q) for t, q in rows)
    return [trajectory for trajectory in trajectories if trajectory is not None]


def recent_questions(session: Session, limit: int) -> list[tuple[str, str]]:
    """Return the texts of the newest questions, each once, with the newest trajectory of each."""
    row, asked = TrajectoryRow, QuestionRow
    each = select(asked.text, row.id, row.started_at).join(asked, asked.id == row.question_id)
    each = each.order_by(asked.text, row.started_at.desc(), row.id)
    newest = each.ext(distinct_on(asked.text)).subquery().c
    query = select(newest.text, newest.id).order_by(newest.started_at.desc(), newest.id)
    return [(text, trajectory) for text, trajectory in session.execute(query.limit(limit))]


def forks_of(session: Session, trajectories: Collection[str]) -> dict[str, Forked]:
    """Return the fork event of those of these trajectories that are forks; if nested, the last."""
    event = TrajectoryEventRow
    query = select(event.trajectory_id, event.payload).order_by(event.trajectory_id, event.seq)
    rows = session.execute(query.where(event.trajectory_id.in_(trajectories), event.kind == "fork"))
    return {trajectory: Forked.model_validate(payload) for trajectory, payload in rows}


def count_trajectories(session: Session, words: str = "") -> int:
    """Return the number of trajectories; ``words``: only those with them in the question."""
    query = select(func.count()).select_from(TrajectoryRow)
    query = query.join(QuestionRow, QuestionRow.id == TrajectoryRow.question_id)
    return session.scalar(query.where(*_question_has(words))) or 0


def _question_has(words: str) -> list[ColumnElement[bool]]:
    wanted = make_storable(words).strip()
    return [QuestionRow.text.icontains(wanted, autoescape=True)] if wanted else []


def is_claimed(session: Session, trajectory: str) -> bool:
    """Check whether some process has claimed a trajectory."""
    query = f"SELECT {claimed_condition(TRAJECTORIES, 'CAST(:trajectory AS text)')}"
    return bool(session.scalar(text(query), {"trajectory": trajectory}))


def stop_abandoned(session: Session) -> int:
    """Stop running trajectories whose process is gone; return how many.

    A claim lasts as long as its process is connected, independent of clocks.
    """
    claimed = claimed_condition(TRAJECTORIES, "trajectories.id")
    query = f"""
        UPDATE trajectories SET state = 'stopped'
        WHERE state = 'running' AND NOT {claimed} RETURNING id
    """
    return len(session.execute(text(query)).all())


def _trajectories() -> Select[TrajectoryRow, QuestionRow]:
    return select(TrajectoryRow, QuestionRow).join(
        QuestionRow, QuestionRow.id == TrajectoryRow.question_id
    )


def _trajectory(
    session: Session, row: TrajectoryRow, question_row: QuestionRow
) -> StoredTrajectory | None:
    """Build a trajectory with its videos; None if it was deleted with them since it was read."""
    videos = select(TrajectoryVideoRow).where(TrajectoryVideoRow.trajectory_id == row.id)
    scopes = tuple(
        Scope(video=v.video_id, last_clip=v.last_clip)
        for v in session.scalars(videos.order_by(TrajectoryVideoRow.video_id))
    )
    if not scopes:
        return None
    question = Question(
        text=question_row.text,
        videos=tuple(scope.video for scope in scopes),
        options=tuple(question_row.options),
        as_of_ms=question_row.as_of_ms,
        type=question_row.type,
    )
    return StoredTrajectory(
        id=row.id,
        question=question,
        view=MemoryView(scopes=scopes, as_of_ms=question_row.as_of_ms),
        machine=row.machine,
        profile=row.profile,
        state=row.state,
        answer=Answer.model_validate(row.answer) if row.answer else None,
        tokens=row.tokens,
        seconds=row.seconds,
        started_at=row.started_at,
    )


EMBED = "embed"
"""The purpose of requests to an embeddings endpoint, which are no part of a run's dialogue."""

SEARCH = "search"
"""The purpose of such requests of single searches, which are of no video and no question."""

# As many as git's: a call refers to all its messages, which are many and often short.
NAME_BYTES = 20


# A call refers to its messages by these: the pool holds each distinct message once.
def message_hash(message: Mapping[str, Any]) -> str:
    """Return the first 160 bits of the SHA-256 of the message's canonical JSON, in URL-safe base64.

    Canonical means sorted keys, no spaces, UTF-8.
    """
    canonical = json.dumps(message, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    digest = hashlib.sha256(canonical.encode()).digest()[:NAME_BYTES]
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def add_call(session: Session, call: CallRecord) -> int:
    """Store a call and its messages; return the call's id."""
    hashes = [message_hash(message) for message in call.messages]
    pool: dict[str, Mapping[str, Any]] = dict(zip(hashes, call.messages, strict=True))
    values = {k: v for k, v in vars(call).items() if k != "messages"}
    row = ModelCallRow(**values, messages=hashes)
    with recording(session):
        if pool:
            rows = [{"hash": key, "content": dict(pool[key])} for key in sorted(pool)]
            session.execute(insert(MessageRow).values(rows).on_conflict_do_nothing())
        session.add(row)
        session.flush()
    return row.id


def messages_of(session: Session, hashes: Sequence[str]) -> list[dict[str, Any]]:
    """Return the pool's messages under ``hashes``, in that order; a hash may repeat."""
    query = select(MessageRow.hash, MessageRow.content).where(MessageRow.hash.in_(set(hashes)))
    rows = session.execute(query).all()
    pool: dict[str, dict[str, Any]] = dict(rows)
    return [pool[key] for key in hashes]


def _record(row: ModelCallRow, messages: Sequence[Mapping[str, Any]] = ()) -> CallRecord:
    known = {one.name: getattr(row, one.name) for one in fields(CallRecord)}
    return CallRecord(**{**known, "messages": messages})


def calls_of(session: Session, trajectory: str) -> list[CallRecord]:
    """Return the calls to language models that a trajectory made, in order."""
    row = ModelCallRow
    query = select(row).where(row.trajectory_id == trajectory, row.purpose != EMBED)
    return [_record(one) for one in session.scalars(query.order_by(row.id))]


def embeddings_of(session: Session, trajectory: str) -> list[CallRecord]:
    """Return a trajectory's requests to an embeddings endpoint, in order."""
    row = ModelCallRow
    query = select(row).where(row.trajectory_id == trajectory, row.purpose == EMBED)
    return [_record(one) for one in session.scalars(query.order_by(row.id))]


def find_call(
    session: Session, request_hash: str, trajectory: str, skip: int = 0
) -> CallRecord | None:
    """Return the ``skip``-th recorded call of that request of a trajectory, with its messages."""
    row = ModelCallRow
    query = select(row).where(row.request_hash == request_hash, row.trajectory_id == trajectory)
    found = session.scalar(query.order_by(row.id).offset(skip).limit(1))
    return None if found is None else _record(found, messages_of(session, found.messages))


def call_of_video(
    session: Session, video: str, request: str, skip: int, since: datetime | None, *, sound: bool
) -> CallRecord | None:
    """Return the ``skip``-th answered call of that request by a video's writers, oldest first.

    Not of calls that came with an import: they were not made here. ``since``: only calls after that
    time; ``sound``: only replies that could be parsed.
    """
    row, log = ModelCallRow, AuditRow
    imported = select(log.at).where(log.deed == Deed.IMPORTED, log.subject == video)
    here = ~imported.where(log.at >= row.called_at).exists()
    query = select(row).where(
        row.video_id == video,
        row.trajectory_id.is_(None),
        row.request_hash == request,
        here,
        row.reply.is_not(None),
    )
    if since is not None:
        query = query.where(row.called_at > since)
    if sound:
        query = query.where(row.error.is_(None))
    found = session.scalar(query.order_by(row.id).offset(skip).limit(1))
    return None if found is None else _record(found)


def _totals() -> list[ColumnElement[Any]]:
    row = ModelCallRow
    counts = (func.count().label("calls"), func.count(row.error).label("failed"))
    amounts = (row.tokens_in, row.tokens_out, row.cost_usd, row.ms)
    return [*counts, *(func.sum(amount).label(amount.key) for amount in amounts)]


def usage_by_clip(session: Session, video_id: str) -> dict[int | None, CallTotals]:
    """Return what a video's writers took, by clip.

    The calls for a patch of the event graph count for the clip after which it is valid. Under None
    are those for no single clip: vectors of captions, and new vectors.
    """
    row = ModelCallRow
    query = (
        select(row.clip, *_totals())
        .where(row.video_id == video_id, row.trajectory_id.is_(None))
        .group_by(row.clip)
        .order_by(row.clip)
    )
    used = (dict(found) for found in session.execute(query).mappings())
    return {one.pop("clip"): CallTotals.model_validate(one) for one in used}


def mean_call(session: Session, model: str, purpose: str) -> tuple[float, float] | None:
    """Return the mean seconds and reply tokens of a model's calls for a purpose; None for none."""
    row = ModelCallRow
    of_kind = and_(row.model == model, row.purpose == purpose, row.error.is_(None))
    query = select(func.avg(row.ms), func.avg(row.tokens_out)).where(of_kind)
    ms, tokens = session.execute(query).one()
    return None if ms is None else (float(ms) / 1_000, float(tokens))


def tokens_a_character(session: Session, model: str) -> float | None:
    """Return the tokens a character of the texts that a model embedded; None without any."""
    row = ModelCallRow
    query = select(func.sum(row.tokens_in), func.sum(row.reply["characters"].as_integer()))
    query = query.where(row.model == model, row.purpose == EMBED, row.reply.is_not(None))
    tokens, length = session.execute(query).one()
    return tokens / length if length else None


def usage_of_searches(session: Session) -> SearchCost:
    row = ModelCallRow
    tokens, cost = (func.coalesce(func.sum(one), 0) for one in (row.tokens_in, row.cost_usd))
    query = select(func.count(), tokens, cost).where(row.purpose == SEARCH)
    requests, tokens_in, cost_usd = session.execute(query).one()
    return SearchCost(requests=requests, tokens=int(tokens_in), cost_usd=float(cost_usd))


def mean_step_of_builder(session: Session, model: str, builder: str) -> CallTotals | None:
    """Return what a step of builds of a strategy took in the mean, of a model's calls on record.

    None if there are none.
    """
    row = ModelCallRow
    steps = func.count(func.distinct(tuple_(row.video_id, row.clip))).label("steps")
    of_builder = row.purpose.startswith(f"{builder} ", autoescape=True)
    query = select(steps, *_totals()).where(row.model == model, of_builder)
    taken = dict(session.execute(query).mappings().one())
    count = taken.pop("steps")
    return CallTotals.model_validate(taken) * (1 / count) if count else None


def images_sent(session: Session, video_id: str) -> int:
    """Return how many images and videos a video's writers were sent, as often as they were."""
    row, message = ModelCallRow, MessageRow
    path = cast('$.content[*] ? (@.type == "image" || @.type == "video")', JSONPATH)
    shown = func.jsonb_array_length(func.jsonb_path_query_array(message.content, path))
    query = select(func.sum(shown)).join_from(row, message, message.hash == any_(row.messages))
    return session.scalar(query.where(row.video_id == video_id, row.trajectory_id.is_(None))) or 0
