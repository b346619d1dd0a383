"""Questions, trajectories and their events."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from psycopg import Connection, Cursor
from sqlalchemy import ColumnElement, Select, delete, func, insert, select, text, update
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.orm import Session

from domain.asking import Answer, Question
from domain.errors import Ambiguous, NotFound
from domain.memories import MemoryView, Scope
from domain.texts import make_storable
from domain.trajectory import EVENT, Event, Forked
from store.advisory_locks import TRAJECTORIES, claimed_condition
from store.migrations import VIEWER, recording
from store.queries.videos import lock_videos_for_share
from store.tables.schema import QuestionRow, TrajectoryEventRow, TrajectoryRow, TrajectoryVideoRow


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
