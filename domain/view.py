"""Memory views: which videos a question may see, and up to which clip of each."""

from __future__ import annotations

from pydantic import Field, NonNegativeInt

from domain.base import Frozen


class Scope(Frozen):
    """One video up to and including clip ``last_clip``; -1 is nothing yet."""

    video: str
    last_clip: int = Field(ge=-1)


class MemoryView(Frozen):
    """The memory as it was after the last clip of each scope. Every read takes one.

    A memory is visible if its clip is in scope and it was not superseded within scope; a segment or
    edge revision if ``from_clip <= last_clip`` and it was not closed by then. ``as_of_ms`` is the
    moment of video time of the question, None if it is asked afterwards: "just now" and "yesterday"
    are relative to it. Visibility depends on the scopes alone.
    """

    scopes: tuple[Scope, ...] = Field(min_length=1)
    as_of_ms: NonNegativeInt | None = None

    @property
    def videos(self) -> tuple[str, ...]:
        """Ids of the videos in view."""
        return tuple(scope.video for scope in self.scopes)
