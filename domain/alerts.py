"""Alerts: standing questions that are judged on every clip, and the events that they record."""

from __future__ import annotations

import re
from datetime import datetime
from enum import StrEnum
from typing import Self
from urllib.parse import urlsplit

from pydantic import Field, PositiveInt, field_validator, model_validator

from domain.base import Frozen, StorableText
from domain.time import TimeSpan

ALERT_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
MAX_ALERTS = 1000
MAX_URL = 2000
MAX_QUESTION = 500


class AlertSettings(Frozen, allow_inf_nan=False):
    """How standing questions are judged, and how their events are delivered."""

    threshold: float = Field(
        default=0.7, gt=0, le=1, description="closeness from which a clip answers a question"
    )
    debounce_s: float = Field(
        default=60.0, ge=0, description="video time in which an alert has no second event"
    )
    private_hosts: tuple[str, ...] = Field(
        default=(), description="host names and addresses of private networks for webhooks"
    )
    attempts: PositiveInt = Field(default=8, description="of delivering an event, in all")
    webhook_s: float = Field(default=10.0, gt=0, le=60, description="for one request, in all")
    command_s: float = Field(default=60.0, gt=0, le=600, description="for one run of a command")


class AlertKind(StrEnum):
    """What an alert waits for."""

    TEXT = "text"
    PERSON = "person"
    UNKNOWN_FACE = "unknown face"


class DeliveryKind(StrEnum):
    """How the events of an alert are delivered."""

    WEBHOOK = "webhook"
    COMMAND = "command"


class DeliveryState(StrEnum):
    """Whether an event was delivered; one of an alert without delivery is only recorded."""

    RECORDED = "recorded"
    WAITING = "waiting"
    DELIVERED = "delivered"
    FAILED = "failed"


class Alert(Frozen):
    """A standing question.

    Attributes:
        id: A random id, which names its delivery in the data directory.
        name: Its name, which no other alert has.
        kind: What it waits for.
        question: What is to be said, read, seen or heard; or the name of a person.
        video: The id of the only video that it is about; None: all videos.
        threshold: Closeness in (0, 1] from which a clip answers it; used by texts only.
        debounce_ms: Milliseconds of video time in which it has no second event.
        delivery: How events are delivered; None: they are recorded only.
    """

    id: str
    name: str
    kind: AlertKind
    question: str = ""
    video: str | None = None
    threshold: float = Field(gt=0, le=1)
    debounce_ms: int = Field(ge=0)
    delivery: DeliveryKind | None = None
    made_at: datetime | None = None

    @property
    def wants(self) -> str:
        """What it waits for, in words."""
        if self.kind is AlertKind.UNKNOWN_FACE:
            return "an unknown face"
        return f"{self.question} was seen" if self.kind is AlertKind.PERSON else self.question


class AlertEvent(Frozen):
    """A clip that answered an alert: when, how close it was, and what shows it.

    What shows it is a line (``memory``), a face (``identity``), a ``segment`` or a ``keyframe``, by
    its id; a segment is known from ``clip`` on. ``id`` stays the same over all attempts to deliver
    it.
    """

    id: str
    alert: Alert
    video: str
    clip: int
    span: TimeSpan
    score: float
    memory: int | None
    identity: int | None
    segment: int | None = None
    keyframe: int | None = None
    state: DeliveryState
    attempts: int
    error: str | None
    at: datetime


class AlertDelivery(Frozen):
    """Where events of an alert go: a webhook, signed with ``secret`` if there is one; or a command.

    It is stored in the data directory, not in the database: whoever can write to the database, or
    hands over a back-up, must not be able to start programs.
    """

    webhook: StorableText | None = None
    command: tuple[str, ...] = ()
    secret: str | None = None

    @field_validator("webhook")
    @classmethod
    def _is_address(cls, url: str | None) -> str | None:
        return None if url is None else checked_webhook(url)

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if (self.webhook is None) == (not self.command):
            raise ValueError("name a webhook or a command")
        if self.secret is not None and self.webhook is None:
            raise ValueError("a secret is for a webhook")
        return self

    @property
    def kind(self) -> DeliveryKind:
        """How events are delivered."""
        return DeliveryKind.COMMAND if self.webhook is None else DeliveryKind.WEBHOOK

    @property
    def shown(self) -> str:
        """Where events go, without the parts that may be secret."""
        if self.webhook is None:
            return f"command {self.command[0]}"
        return f"webhook of {urlsplit(self.webhook).hostname}"


def checked_webhook(url: str) -> str:
    """Return the address of a webhook.

    Raises:
        ValueError: it is none, or has a user name or password in it.
    """
    if len(url) > MAX_URL or not url.isprintable() or " " in url or not url.isascii():
        raise ValueError("a webhook is an http or https address without spaces")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
        raise ValueError("a webhook is an http or https address")
    if parts.username is not None or parts.password is not None:
        raise ValueError("a webhook has no user name or password: sign it with --secret-file")
    return url
