"""Links to one answer or moment, for somebody without an account."""

from __future__ import annotations

from datetime import datetime

from pydantic import model_validator

from domain.base import Frozen
from domain.time import TimeSpan

MIN_DAYS, MAX_DAYS = 1, 365
"""Days for which a link may be valid."""
DEFAULT_DAYS = 7
MAX_MOMENT_MS = 10 * 60_000
"""The longest span that is a moment."""


class SharedLink(Frozen):
    """A link to an answer, by its trajectory, or to a moment of a video; ``url`` is signed."""

    id: str
    trajectory: str | None = None
    video: str | None = None
    span: TimeSpan | None = None
    made_at: datetime
    expires_at: datetime
    url: str = ""

    @model_validator(mode="after")
    def _one_target(self) -> SharedLink:
        if (self.trajectory is None) == (self.video is None):
            raise ValueError("a link is to an answer or to a moment")
        if (self.video is None) != (self.span is None):
            raise ValueError("a moment has a video and a span")
        return self

    @property
    def subject(self) -> str:
        """The id of what it shows, for the audit log."""
        return self.trajectory or self.video or ""

    @property
    def path(self) -> str:
        """The path of its page, which is signed together with ``until``."""
        return f"/shared/{self.id}"

    @property
    def until(self) -> int:
        """When it expires, in whole seconds since 1970."""
        return int(self.expires_at.timestamp())
