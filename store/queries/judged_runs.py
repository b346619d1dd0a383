"""Judged answers by the question asked and the strategy that answered it."""

from __future__ import annotations

import json
from typing import NamedTuple

from sqlalchemy import Integer, cast, exists, func, select
from sqlalchemy.orm import Session

from store.tables.schema import (
    JudgementRow,
    QuestionRow,
    TrajectoryEventRow,
    TrajectoryRow,
    TrajectoryVideoRow,
)


class JudgedRun(NamedTuple):
    """A judged answer. Equal ``asked``: the same question, over the same videos, by one profile.

    ``rounds`` are those that the answer took.
    """

    trajectory: str
    asked: str
    text: str
    question_type: str
    strategy: str
    right: bool
    rounds: int


def judged_runs(session: Session) -> list[JudgedRun]:
    """Return the judged answers, in the order of judging, without forks: people changed those."""
    judgement, run, question = JudgementRow, TrajectoryRow, QuestionRow
    event, video = TrajectoryEventRow, TrajectoryVideoRow
    of_run = event.trajectory_id == run.id
    rounds = select(func.max(cast(event.payload["rounds"].as_string(), Integer))).where(
        of_run, event.kind == "end"
    )
    videos = select(func.array_agg(video.video_id)).where(video.trajectory_id == run.id)
    rows = session.execute(
        select(
            run.id,
            run.machine,
            run.profile,
            judgement.question_type,
            judgement.right,
            question.text,
            question.options,
            question.as_of_ms,
            videos.scalar_subquery(),
            rounds.scalar_subquery(),
        )
        .select_from(judgement)
        .join(run, run.id == judgement.trajectory_id)
        .join(question, question.id == run.question_id)
        .where(judgement.right.is_not(None), run.state == "done")
        .where(~exists().where(of_run, event.kind == "fork"))
        .order_by(judgement.judged_at, run.id)
    )
    return [
        JudgedRun(
            trajectory=name,
            asked=json.dumps([profile, text, options, as_of_ms, sorted(searched or ())]),
            text=text,
            question_type=kind,
            strategy=machine,
            right=right,
            rounds=count or 0,
        )
        for name, machine, profile, kind, right, text, options, as_of_ms, searched, count in rows
    ]
