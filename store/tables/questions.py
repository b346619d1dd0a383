"""The tables of questions: trajectories, events, model calls, judgements and skills."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import (
    ARRAY,
    BigInteger,
    DateTime,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from store.tables.library import Base, added_at, primary_key, reference, video_column


class QuestionRow(Base):
    """A question as asked."""

    __tablename__ = "questions"
    id: Mapped[int] = primary_key()
    text: Mapped[str]
    options: Mapped[list[Any]] = mapped_column(JSONB)
    as_of_ms: Mapped[int | None] = mapped_column(BigInteger)
    type: Mapped[str | None]
    asked_at: Mapped[datetime] = added_at()


class TrajectoryRow(Base):
    """One run of a reasoning machine. ``state``: running, done, stopped or failed.

    ``viewer``: who asked, if rights limit what they see; only they and the unlimited see it.
    """

    __tablename__ = "trajectories"
    id: Mapped[str] = mapped_column(primary_key=True)
    question_id: Mapped[int] = reference("questions.id")
    machine: Mapped[str]
    profile: Mapped[str]
    state: Mapped[str]
    answer: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    tokens: Mapped[int]
    seconds: Mapped[float]
    started_at: Mapped[datetime] = added_at()
    viewer: Mapped[str | None]


class TrajectoryVideoRow(Base):
    """A video, up to ``last_clip``, that a trajectory may search."""

    __tablename__ = "trajectory_videos"
    trajectory_id: Mapped[str] = mapped_column(
        ForeignKey("trajectories.id", ondelete="CASCADE"), primary_key=True
    )
    video_id: Mapped[str] = video_column(primary_key=True, index=True)
    last_clip: Mapped[int]


class TrajectoryEventRow(Base):
    """One typed event of a trajectory, append-only.

    ``step`` is the machine's step it came from, ``clock`` the seconds that the run had spent.
    """

    __tablename__ = "trajectory_events"
    __table_args__ = (
        # Finds the skills given to any question without scanning its other events.
        Index(
            "trajectory_events_of_skills", "trajectory_id", postgresql_where=text("kind = 'skills'")
        ),
    )
    trajectory_id: Mapped[str] = mapped_column(
        ForeignKey("trajectories.id", ondelete="CASCADE"), primary_key=True
    )
    seq: Mapped[int] = mapped_column(primary_key=True)
    kind: Mapped[str]
    payload: Mapped[dict[str, Any]] = mapped_column(JSONB)
    at: Mapped[datetime] = added_at()
    step: Mapped[str] = mapped_column(server_default="")
    clock: Mapped[float] = mapped_column(server_default=text("0"))


class SkillRow(Base):
    """A version of a skill, as ``domain.skills.Skill``; ``banned`` is the same in all versions."""

    __tablename__ = "skills"
    name: Mapped[str] = mapped_column(primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True)
    payload: Mapped[dict[str, Any]] = mapped_column(JSONB)
    banned: Mapped[bool] = mapped_column(server_default=text("false"))
    made_at: Mapped[datetime] = added_at()


class JudgementRow(Base):
    """A judgement of an answer by a benchmark or a person; ``learned``: skills learned from it."""

    __tablename__ = "judgements"
    trajectory_id: Mapped[str] = mapped_column(
        ForeignKey("trajectories.id", ondelete="CASCADE"), primary_key=True
    )
    question_type: Mapped[str]
    right: Mapped[bool | None]
    learned: Mapped[bool] = mapped_column(server_default=text("false"))
    judged_at: Mapped[datetime] = added_at()


class ObservationRow(Base):
    """A signal of a judged trajectory; ``skill`` and ``version``: the skill made of it."""

    __tablename__ = "observations"
    trajectory_id: Mapped[str] = mapped_column(
        ForeignKey("trajectories.id", ondelete="CASCADE"), primary_key=True
    )
    signal: Mapped[str] = mapped_column(primary_key=True)
    question_type: Mapped[str]
    skill: Mapped[str | None]
    version: Mapped[int | None]


class MessageRow(Base):
    """The message pool: each distinct message once, by the hash of its canonical JSON."""

    __tablename__ = "messages"
    hash: Mapped[str] = mapped_column(primary_key=True)
    content: Mapped[dict[str, Any]] = mapped_column(JSONB)


class ModelCallRow(Base):
    """A call to a language model. ``messages`` are hashes into the pool."""

    __tablename__ = "model_calls"
    __table_args__ = (Index("model_calls_of_request", "request_hash"),)
    id: Mapped[int] = primary_key()
    request_hash: Mapped[str]
    purpose: Mapped[str]
    profile: Mapped[str]
    model: Mapped[str]
    messages: Mapped[list[str]] = mapped_column(ARRAY(Text))
    reply: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    error: Mapped[str | None]
    tokens_in: Mapped[int]
    tokens_out: Mapped[int]
    cost_usd: Mapped[float]
    ms: Mapped[int]
    video_id: Mapped[str | None] = mapped_column(
        ForeignKey("videos.id", ondelete="CASCADE"), index=True
    )
    clip: Mapped[int | None]
    trajectory_id: Mapped[str | None] = mapped_column(
        ForeignKey("trajectories.id", ondelete="CASCADE"), index=True
    )
    called_at: Mapped[datetime] = added_at()


# The tables of evaluations: runs over data sets, and the result of each question.


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


# The tables of alerts: standing questions, clips that wait to be judged, and hits.
#
# Hits hold no text: they refer to the line, face, segment or keyframe that shows them, so what is
# deleted or forgotten there is gone from them too. Where hits are delivered is in the data
# directory.


class AlertRow(Base):
    """A standing question. ``video_id``: the only video that it is about; NULL: all videos."""

    __tablename__ = "alerts"
    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    kind: Mapped[str]
    question: Mapped[str]
    video_id: Mapped[str | None] = video_column(index=True)
    threshold: Mapped[float]
    debounce_ms: Mapped[int] = mapped_column(BigInteger)
    delivery: Mapped[str | None] = mapped_column(comment="webhook, command; NULL: none")
    made_at: Mapped[datetime] = added_at()


class AlertClipRow(Base):
    """A clip that is in memory, or the segments written after it, that were not judged yet."""

    __tablename__ = "alert_clips"
    __table_args__ = (
        ForeignKeyConstraint(
            ["video_id", "clip"], ["clips.video_id", "clips.clip"], ondelete="CASCADE"
        ),
    )
    video_id: Mapped[str] = mapped_column(primary_key=True)
    clip: Mapped[int] = mapped_column(primary_key=True)
    segments: Mapped[bool] = mapped_column(
        primary_key=True,
        server_default="false",
        comment="true: the segments that were written after the clip; false: the clip itself",
    )
    attempts: Mapped[int] = mapped_column(server_default="0")


class AlertHitRow(Base):
    """A clip that answered an alert. ``state``: recorded, waiting, delivered or failed."""

    __tablename__ = "alert_hits"
    __table_args__ = (
        ForeignKeyConstraint(
            ["video_id", "clip"], ["clips.video_id", "clips.clip"], ondelete="CASCADE"
        ),
        Index("alert_hits_of_clip", "video_id", "clip"),
        Index("alert_hits_waiting", "alert_id", postgresql_where=text("state = 'waiting'")),
    )
    id: Mapped[str] = mapped_column(primary_key=True)
    alert_id: Mapped[str] = mapped_column(ForeignKey("alerts.id", ondelete="CASCADE"), index=True)
    video_id: Mapped[str]
    clip: Mapped[int]
    start_ms: Mapped[int] = mapped_column(BigInteger)
    end_ms: Mapped[int] = mapped_column(BigInteger)
    score: Mapped[float]
    memory_id: Mapped[int | None] = reference("memories.id", index=True)
    identity_id: Mapped[int | None] = reference("identities.id", index=True)
    segment_id: Mapped[int | None] = reference("segments.id", index=True)
    keyframe_id: Mapped[int | None] = reference("keyframes.id", index=True)
    state: Mapped[str]
    error: Mapped[str | None] = mapped_column(comment="why it was not delivered, without content")
    at: Mapped[datetime] = added_at()
