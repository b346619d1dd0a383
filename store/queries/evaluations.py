"""Evaluation runs: their questions, results, costs, and what was learned on the way."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Select, and_, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from domain.evaluation import AnswerUsage, EvaluationRun, QuestionPart, RunSettings, Verdict
from store.tables.schema import (
    EvalBatchRow,
    EvalResultRow,
    EvalRunRow,
    ModelCallRow,
    ObservationRow,
    TrajectoryEventRow,
    TrajectoryRow,
    TrajectoryVideoRow,
)

RUNNING, DONE, STOPPED = "running", "done", "stopped"
SKILL_PURPOSE = "skill"
"""The purpose of calls that write skills."""


class Slot(NamedTuple):
    """A planned question of a run in one arm; ``item`` is the data set's own record."""

    arm: str
    question: str
    place: int
    part: QuestionPart
    batch: int
    video: str
    item: Mapping[str, Any]


@dataclass(frozen=True)
class Result:
    """The result of a slot; ``took`` is its trajectory's."""

    slot: Slot
    trajectory: str | None
    state: str | None
    verdict: Verdict | None
    answer: Mapping[str, Any] | None
    took: AnswerUsage


def begin_run(session: Session, name: str, settings: RunSettings) -> RunSettings:
    """Record a run as running; return its settings: the original ones if it exists already."""
    values = {
        "name": name,
        "dataset": settings.dataset,
        "profile": settings.profile,
        "settings": settings.model_dump(mode="json"),
        "state": RUNNING,
    }
    row = insert(EvalRunRow).values(values)
    session.execute(row.on_conflict_do_nothing(index_elements=["name"]))
    stored = session.scalar(select(EvalRunRow.settings).where(EvalRunRow.name == name))
    return RunSettings.model_validate(stored)


def set_run_state(session: Session, name: str, state: str, note: str = "") -> None:
    """Set the state of a run; one that is done or stopped gets an end time."""
    ended = None if state == RUNNING else func.now()
    values = {"state": state, "note": note, "ended_at": ended}
    session.execute(update(EvalRunRow).where(EvalRunRow.name == name).values(**values))


def list_runs(
    session: Session, name: str | None = None, offset: int = 0, limit: int | None = None
) -> list[EvaluationRun]:
    """Return all runs, latest first, or a page of them, or the one with that name."""
    row, result = EvalRunRow, EvalResultRow
    query = (
        select(row, func.count(result.question), func.count(result.verdict))
        .outerjoin(result, result.run == row.name)
        .group_by(row.name)
        .order_by(row.began_at.desc(), row.name)
        .offset(offset)
        .limit(limit)
    )
    if name is not None:
        query = query.where(row.name == name)
    return [
        EvaluationRun(
            name=run.name,
            settings=RunSettings.model_validate(run.settings),
            state=run.state,
            note=run.note,
            began_at=run.began_at,
            ended_at=run.ended_at,
            planned=planned,
            judged=judged,
        )
        for run, planned, judged in session.execute(query)
    ]


def count_runs(session: Session) -> int:
    return session.scalar(select(func.count()).select_from(EvalRunRow)) or 0


def plan_slots(session: Session, run: str, slots: Sequence[Slot]) -> None:
    """Record questions of a run; existing ones are left unchanged."""
    values = [
        {
            "run": run,
            "arm": slot.arm,
            "question": slot.question,
            "place": slot.place,
            "part": str(slot.part),
            "batch": slot.batch,
            "video_id": slot.video,
            "item": dict(slot.item),
        }
        for slot in slots
    ]
    if values:
        session.execute(insert(EvalResultRow).on_conflict_do_nothing(), values)


def set_trajectory(session: Session, run: str, slot: Slot, trajectory: str) -> None:
    session.execute(
        update(EvalResultRow).where(*_is_slot(run, slot)).values(trajectory_id=trajectory)
    )


def set_verdict(session: Session, run: str, slot: Slot, verdict: Verdict) -> None:
    values = {"verdict": verdict.model_dump(mode="json")}
    session.execute(update(EvalResultRow).where(*_is_slot(run, slot)).values(**values))


def _is_slot(run: str, slot: Slot) -> tuple[Any, ...]:
    row = EvalResultRow
    return row.run == run, row.arm == slot.arm, row.question == slot.question


def run_results(session: Session, run: str) -> list[Result]:
    """Return all questions of a run with their results, by arm and place."""
    row = EvalResultRow
    query = _with_trajectory().where(row.run == run).order_by(row.arm, row.place)
    rows = session.execute(query).all()
    # Rounds, cost and skills by trajectory.
    trajectories = select(EvalResultRow.trajectory_id).where(EvalResultRow.run == run)
    event, call = TrajectoryEventRow, ModelCallRow
    events = select(event.trajectory_id, event.kind, event.payload).where(
        event.trajectory_id.in_(trajectories), event.kind.in_(("end", "skills"))
    )
    costs = (
        select(call.trajectory_id, func.sum(call.cost_usd))
        .where(call.trajectory_id.in_(trajectories))
        .group_by(call.trajectory_id)
    )
    known: dict[str, dict[str, Any]] = {
        str(name): {"cost_usd": cost} for name, cost in session.execute(costs)
    }
    for name, kind, payload in session.execute(events):
        took = known.setdefault(name, {})
        if kind == "end":
            took["rounds"] = payload["rounds"]
        else:
            took["skills"] = [skill["name"] for skill in payload["skills"]]
            choosing = (s["name"] for s in payload["skills"] if s["policy"]["strategy"])
            took["chosen_by"] = next(choosing, "")
    return [
        _result(row, trajectory, known.get(row.trajectory_id or "", {})) for row, trajectory in rows
    ]


def slot_result(session: Session, run: str, slot: Slot) -> Result:
    """Return the result of one question, without its usage."""
    row, trajectory = session.execute(_with_trajectory().where(*_is_slot(run, slot))).one()
    return _result(row, trajectory, {})


def _with_trajectory() -> Select[EvalResultRow, TrajectoryRow | None]:
    row, trajectory = EvalResultRow, TrajectoryRow
    return select(row, trajectory).outerjoin(trajectory, trajectory.id == row.trajectory_id)


def _result(
    row: EvalResultRow, trajectory: TrajectoryRow | None, known: Mapping[str, Any]
) -> Result:
    part, took = QuestionPart(row.part), dict(known)
    if trajectory is not None:
        took |= {"tokens": trajectory.tokens, "seconds": trajectory.seconds}
        took["strategy"] = trajectory.machine
    return Result(
        slot=Slot(row.arm, row.question, row.place, part, row.batch, row.video_id, row.item),
        trajectory=row.trajectory_id,
        state=trajectory.state if trajectory else None,
        verdict=Verdict.model_validate(row.verdict) if row.verdict else None,
        answer=trajectory.answer if trajectory else None,
        took=AnswerUsage.model_validate(took),
    )


def run_cost(session: Session, run: str, videos: Collection[str] = ()) -> float:
    """Return the US dollars that a run has cost so far.

    These are its answers and their judges, and since the run began the writers of its videos and of
    skills. ``videos`` are others of its videos, without a planned question.
    """
    of_run = EvalResultRow.run == run
    call, row = ModelCallRow, EvalRunRow
    since = call.called_at >= select(row.began_at).where(row.name == run).scalar_subquery()
    planned = call.video_id.in_(select(EvalResultRow.video_id).where(of_run))
    relevant = or_(
        call.trajectory_id.in_(select(EvalResultRow.trajectory_id).where(of_run)),
        and_(since, or_(planned, call.video_id.in_(videos))),
        and_(since, call.purpose == SKILL_PURPOSE),
    )
    return float(session.scalar(select(func.sum(call.cost_usd)).where(relevant)) or 0)


def slot_cost(session: Session, run: str, slot: Slot) -> float:
    """Return the US dollars that a question of a run has cost so far: answering and judging it."""
    call, row = ModelCallRow, EvalResultRow
    query = select(func.sum(call.cost_usd)).join(row, row.trajectory_id == call.trajectory_id)
    return float(session.scalar(query.where(*_is_slot(run, slot))) or 0)


def add_batch(session: Session, run: str, batch: int, learned: Mapping[str, Any]) -> None:
    values = {"run": run, "batch": batch, "learned": dict(learned)}
    session.execute(insert(EvalBatchRow).values(values).on_conflict_do_nothing())


def learned_batches(session: Session, run: str) -> dict[int, Mapping[str, Any]]:
    row = EvalBatchRow
    query = select(row.batch, row.learned).where(row.run == run).order_by(row.batch)
    return dict(session.execute(query).all())


def learned_videos(session: Session, skills: Sequence[str]) -> dict[str, frozenset[str]]:
    observation, trajectory_video = ObservationRow, TrajectoryVideoRow
    query = (
        select(observation.skill, trajectory_video.video_id)
        .join(trajectory_video, trajectory_video.trajectory_id == observation.trajectory_id)
        .where(observation.skill.in_(set(skills)))
        .distinct()
    )
    videos_by_skill: dict[str, set[str]] = {}
    for skill, video in session.execute(query):
        videos_by_skill.setdefault(str(skill), set()).add(video)
    return {skill: frozenset(videos) for skill, videos in videos_by_skill.items()}
