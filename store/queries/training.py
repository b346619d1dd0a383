"""Judged trajectories to train on, with the right answers that data sets give."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from sqlalchemy import exists, select
from sqlalchemy.orm import Session

from store.tables.schema import (
    EvalResultRow,
    JudgementRow,
    TrajectoryEventRow,
    TrajectoryRow,
)


class JudgedRecord(NamedTuple):
    """A judged trajectory; ``item`` is the data set's own record of its question, if it has one."""

    trajectory: str
    right: bool
    item: Mapping[str, Any] | None


def judged_records(session: Session, strategy: str) -> list[JudgedRecord]:
    """Return the judged trajectories of a strategy, oldest first, without forks.

    An answer counts as judged where somebody or an evaluation said whether it is right.
    """
    run, judgement, result = TrajectoryRow, JudgementRow, EvalResultRow
    forked = exists().where(
        TrajectoryEventRow.trajectory_id == run.id, TrajectoryEventRow.kind == "fork"
    )
    rows = session.execute(
        select(run.id, judgement.right, result.verdict, result.item)
        .outerjoin(judgement, judgement.trajectory_id == run.id)
        .outerjoin(result, result.trajectory_id == run.id)
        .where(run.machine == strategy, run.state == "done", ~forked)
        .order_by(run.started_at, run.id)
    )
    records: dict[str, JudgedRecord] = {}
    for name, judged, verdict, item in rows:
        right = judged if judged is not None else (verdict or {}).get("right")
        if right is not None:
            records.setdefault(name, JudgedRecord(name, bool(right), item))
    return list(records.values())
