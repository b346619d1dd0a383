"""The tables of questions: trajectories, events, model calls, judgements and skills."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ARRAY, BigInteger, ForeignKey, Index, Text, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from store.tables.base import Base, added_at, primary_key, reference, video_column


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
    """One typed event of a trajectory, append-only; ``step`` is the machine's step it came from."""

    __tablename__ = "trajectory_events"
    __table_args__ = (
        # Finds the skills given to any question without scanning its other events.
        Index(
            "trajectory_events_of_skills",
            "trajectory_id",
            postgresql_where=text("kind = 'skills'"),
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
