"""The tables of evaluations: runs over data sets, and the result of each question."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import DateTime, ForeignKey
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from store.tables.base import Base, added_at, video_column


class EvalRunRow(Base):
    """A run over a data set. ``state``: running, done or stopped, with ``note`` saying why."""

    __tablename__ = "eval_runs"
    name: Mapped[str] = mapped_column(primary_key=True)
    dataset: Mapped[str]
    profile: Mapped[str]
    settings: Mapped[dict[str, Any]] = mapped_column(JSONB)
    state: Mapped[str]
    note: Mapped[str] = mapped_column(server_default="")
    began_at: Mapped[datetime] = added_at()
    ended_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))


class EvalResultRow(Base):
    """A question of a run in one arm; it is deleted with its video and with its trajectory.

    ``item``: the data set's record of the question; ``verdict``: that of the judges, NULL before.
    """

    __tablename__ = "eval_results"
    run: Mapped[str] = mapped_column(
        ForeignKey("eval_runs.name", ondelete="CASCADE"), primary_key=True
    )
    arm: Mapped[str] = mapped_column(primary_key=True)
    question: Mapped[str] = mapped_column(primary_key=True)
    place: Mapped[int]
    part: Mapped[str]
    batch: Mapped[int]
    video_id: Mapped[str] = video_column(index=True)
    trajectory_id: Mapped[str | None] = mapped_column(
        ForeignKey("trajectories.id", ondelete="CASCADE"), unique=True
    )
    item: Mapped[dict[str, Any]] = mapped_column(JSONB)
    verdict: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))


class EvalBatchRow(Base):
    """A batch of a run that was learned from, and what changed: names and counts only."""

    __tablename__ = "eval_batches"
    run: Mapped[str] = mapped_column(
        ForeignKey("eval_runs.name", ondelete="CASCADE"), primary_key=True
    )
    batch: Mapped[int] = mapped_column(primary_key=True)
    learned: Mapped[dict[str, Any]] = mapped_column(JSONB)
    learned_at: Mapped[datetime] = added_at()
