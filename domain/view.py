"""What a question may see: which videos, and up to which clip of each."""

from __future__ import annotations

from pydantic import Field, NonNegativeInt

from domain.base import Frozen


class Scope(Frozen):
    """One video up to and including clip ``last_clip``; -1 is nothing yet."""

    video: str
    last_clip: int = Field(ge=-1)


class MemoryView(Frozen):
    """The memory as it was after the last clip of each scope. Every read takes one.

    A memory is visible when its clip is in scope and it was not superseded within scope; a
    segment or edge revision when ``from_clip <= last_clip`` and it was not closed by then.
    ``as_of_ms`` is the moment of video time at which is asked, None where it is asked afterwards:
    "just now" and "yesterday" are told from it. What is seen is said by the scopes alone.
    """

    scopes: tuple[Scope, ...] = Field(min_length=1)
    as_of_ms: NonNegativeInt | None = None

    @property
    def videos(self) -> tuple[str, ...]:
        """Ids of the videos in view."""
        return tuple(scope.video for scope in self.scopes)
