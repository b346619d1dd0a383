"""What watching files will take, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from domain.base import Frozen
from domain.errors import HomerError
from domain.moments import Text
from domain.words import format_time


class Watched(Frozen):
    """What came into memory of a file or stream: ``fresh`` clips by this run, or the ``error``.

    Neither a video nor an error: the file was left alone, since its video was deleted.
    ``failure`` is the error as it was raised, for programs.
    """

    path: str
    video: Text = ""
    title: Text = ""
    clips: int = 0
    fresh: int = 0
    failed: int = 0
    error: Text = ""
    used: Text = Field(default="", description="of language models, a clip")
    ended: Text = Field(default="", description="how a stream ended")
    failure: Any = Field(default=None, exclude=True, repr=False)

    @classmethod
    def failing(cls, path: str, error: HomerError) -> Watched:
        """Return that a file or address could not be watched."""
        return cls(path=path, error=str(error), failure=error)

    @property
    def exit_code(self) -> int:
        """Return 0 when every clip is in memory, 4 when some are left, else the error's code."""
        if self.failure is not None:
            return int(self.failure.exit_code)
        return 4 if self.failed and not self.ended else 0


class IngestEstimate(Frozen):
    """What watching a file will take.

    ``images``, ``tokens_in`` and ``tokens_out`` are means of a clip, patches of the event graph
    and texts for an embeddings endpoint included. ``cost_usd`` and ``seconds`` are of all clips; no
    cost where no price is known.
    ``model_timed``: the seconds include the model's replies, as long as those on record took.
    ``error``: why it cannot be watched.
    """

    title: str
    clips: int
    images: float = 0.0
    tokens_in: float = 0.0
    tokens_out: float = 0.0
    cost_usd: float | None = 0.0
    seconds: float = 0.0
    model_timed: bool = True
    error: Text = ""
    exit_code: int = Field(default=0, exclude=True)

    def __str__(self) -> str:
        """Return the estimate in one line."""
        if not self.clips:
            return f"{self.title}: nothing to watch, it is in memory"
        count = f"{self.clips} clip{'s' * (self.clips != 1)}"
        tokens = self.tokens_in + self.tokens_out
        cost = "at an unknown price" if self.cost_usd is None else f"${self.cost_usd:.4f} in all"
        images = f"{self.images:.1f} images and " if self.images else ""
        used = f"{images}{tokens:,.0f} tokens a clip, {cost}" if tokens else ""
        besides = "" if self.model_timed else " besides the model's replies"
        took = f"about {format_time(round(self.seconds * 1_000))} in all{besides}"
        return f"{self.title}: {'; '.join(filter(None, [count, used, took]))}"


def sum_of(estimates: Sequence[IngestEstimate]) -> IngestEstimate:
    """Return what several files will take together."""
    clips = sum(one.clips for one in estimates)
    costs = [one.cost_usd for one in estimates]

    def mean(values: Sequence[float]) -> float:
        whole = sum(value * one.clips for value, one in zip(values, estimates, strict=True))
        return whole / clips if clips else 0.0

    return IngestEstimate(
        title="together",
        clips=clips,
        images=mean([one.images for one in estimates]),
        tokens_in=mean([one.tokens_in for one in estimates]),
        tokens_out=mean([one.tokens_out for one in estimates]),
        cost_usd=None if None in costs else sum(cost or 0.0 for cost in costs),
        seconds=sum(one.seconds for one in estimates),
        model_timed=all(one.model_timed for one in estimates),
    )


class Imported(Frozen):
    """What came into memory by an import.

    ``answers`` came with an export, and ``left`` of it stay behind: they cite by numbers that are
    taken here, or videos. ``captions`` are counts by time scale, of a reference.
    """

    video: Text = ""
    title: str
    clips: int = 0
    fresh: int = 0
    failed: int = 0
    answers: int | None = Field(default=None, exclude_if=lambda count: count is None)
    left: int = Field(default=0, exclude_if=lambda count: not count)
    captions: Mapping[str, int] = Field(default={}, exclude_if=lambda counts: not counts)
    error: Text = ""

    @property
    def exit_code(self) -> int:
        """The exit code of a command: 4 where some of it is not in memory."""
        return 4 if self.error or self.failed else 0
