"""Alerts: standing questions that are judged on every clip, and the clips that answered them."""

from __future__ import annotations

import re
import uuid
from datetime import UTC, datetime
from enum import StrEnum
from typing import Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from domain.base import Frozen, StorableText
from domain.time import OfVideo, TimeSpan

ALERT_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
MAX_ALERTS = 1000
MAX_URL = 2000
MAX_QUESTION = 500


class AlertSettings(Frozen, allow_inf_nan=False):
    """How standing questions are judged, and how the clips that answer them are delivered."""

    threshold: float = Field(
        default=0.7, gt=0, le=1, description="closeness from which a clip answers a question"
    )
    debounce_s: float = Field(
        default=60.0, ge=0, description="video time in which an alert has no second hit"
    )
    private_hosts: tuple[str, ...] = Field(
        default=(), description="host names and addresses of private networks for webhooks"
    )
    give_up_s: float = Field(
        default=86_400.0, gt=0, description="a hit that is not delivered by then never will be"
    )
    webhook_s: float = Field(default=10.0, gt=0, le=60, description="for one request, in all")
    command_s: float = Field(default=60.0, gt=0, le=600, description="for one run of a command")


class AlertKind(StrEnum):
    """What an alert waits for."""

    TEXT = "text"
    PERSON = "person"
    UNKNOWN_FACE = "unknown face"


class DeliveryKind(StrEnum):
    """How the hits of an alert are delivered."""

    WEBHOOK = "webhook"
    COMMAND = "command"


class DeliveryState(StrEnum):
    """Whether a hit was delivered; one of an alert without delivery is only recorded."""

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
        title: The title of that video.
        threshold: Closeness in (0, 1] from which a clip answers it; used by texts only.
        debounce_ms: Milliseconds of video time in which it has no second hit.
        delivery: How hits are delivered; None: they are recorded only.
        place: Where they are delivered to from this machine; None: from another, or not at all.
        hits: How many clips answered it.
    """

    id: str = Field(default_factory=lambda: uuid.uuid4().hex, exclude=True)
    name: str
    kind: AlertKind
    question: str = ""
    video: str | None = None
    title: str | None = None
    threshold: float = Field(gt=0, le=1)
    debounce_ms: int = Field(ge=0)
    delivery: DeliveryKind | None = None
    place: str | None = None
    made_at: datetime | None = None
    hits: int = 0

    @property
    def wants(self) -> str:
        """What it waits for, in words."""
        if self.kind is AlertKind.UNKNOWN_FACE:
            return "an unknown face"
        return f"{self.question} was seen" if self.kind is AlertKind.PERSON else self.question


class Hit(OfVideo):
    """A clip, or a segment of several, that answered an alert.

    What shows it is a line (``memory``), a face (``identity``), a ``segment`` or a ``keyframe``, by
    its id; a segment is known from ``clip`` on. ``id`` stays the same over all attempts to deliver
    it. ``title``, ``text`` and ``ref`` are filled in when it is shown, with names as known then;
    ``at`` is the time of day, for a
    stream.
    """

    id: str = Field(default_factory=lambda: uuid.uuid4().hex)
    alert: str
    kind: AlertKind
    question: str = ""
    clip: int
    score: float
    memory: int | None = Field(default=None, exclude=True)
    identity: int | None = Field(default=None, exclude=True)
    segment: int | None = Field(default=None, exclude=True)
    keyframe: int | None = Field(default=None, exclude=True)
    text: str = ""
    ref: str | None = None
    at: datetime | None = None
    state: DeliveryState = DeliveryState.RECORDED
    error: str | None = None
    recorded: datetime = Field(default_factory=lambda: datetime.now(UTC))

    @property
    def extent(self) -> TimeSpan:
        """What debouncing counts from: all of a segment, else the moment at which it begins."""
        start_ms = self.span.start_ms
        return self.span if self.segment is not None else TimeSpan.of(start_ms, start_ms)


# It is stored in the data directory, not in the database: whoever can write to the database, or
# hands over a back-up, must not be able to start programs.
class Delivery(Frozen):
    """Where hits go: a webhook, signed with ``secret`` if there is one; or a command."""

    webhook: StorableText | None = None
    command: tuple[str, ...] = ()
    secret: str | None = None

    @field_validator("webhook")
    @classmethod
    def _is_address(cls, url: str | None) -> str | None:
        if url is None:
            return None
        if len(url) > MAX_URL or not url.isprintable() or " " in url or not url.isascii():
            raise ValueError("a webhook is an http or https address without spaces")
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
            raise ValueError("a webhook is an http or https address")
        if parts.username is not None or parts.password is not None:
            raise ValueError("a webhook has no user name or password: sign it with --secret-file")
        return url

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if (self.webhook is None) == (not self.command):
            raise ValueError("name a webhook or a command")
        if self.secret is not None and self.webhook is None:
            raise ValueError("a secret is for a webhook")
        return self

    @property
    def kind(self) -> DeliveryKind:
        """How hits are delivered."""
        return DeliveryKind.COMMAND if self.webhook is None else DeliveryKind.WEBHOOK

    @property
    def shown(self) -> str:
        """Where hits go, without the parts that may be secret."""
        if self.webhook is None:
            return f"command {self.command[0]}"
        return f"webhook of {urlsplit(self.webhook).hostname}"
