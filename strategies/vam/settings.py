"""The numbers of Visual Agentic Memory, with the paper's defaults where it has them."""

from __future__ import annotations

from typing import Self

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from domain.base import Frozen

SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
"""In milliseconds."""


class AgeTier(Frozen):
    """What happens to frames from an age on.

    One frame in ``every_ms`` stays, with ``side`` pixels at most and this JPEG quality.
    """

    from_age_ms: PositiveInt
    every_ms: PositiveInt
    side: PositiveInt
    quality: int = Field(ge=1, le=100)


class VisualMemorySettings(Frozen, allow_inf_nan=False):
    """Settings of what is kept of a stream's pictures; differences are of grey values, 0 to 255.

    Gates: a frame is dropped under ``least_sharpness`` (variance of the Laplacian), under
    ``least_change`` (mean absolute difference to the last frame that passed), from
    ``most_similarity`` on (structural similarity, -1 to 1) and under ``least_histogram_change`` (1
    minus the correlation of grey histograms; 0: off). The last three are measured on
    ``plane_side`` pixels.

    Distances are 1 minus cosines. ``moment_distance`` and ``event_distance`` hold until there are
    ``least_distances``; then Otsu's threshold of the last ``recent_distances`` does, for events
    times ``event_relaxation``. These three and ``plane_side`` are ours: the paper names none.

    A build goes on by ``step_ms``. A language model sees ``document_frames`` of an event at most
    and writes ``document_lines``. A question has ``rounds``.
    """

    every_ms: PositiveInt = 2 * SECOND
    least_sharpness: float = Field(default=20.0, ge=0)
    least_change: float = Field(default=20.0, ge=0, le=255)
    most_similarity: float = Field(default=0.92, ge=-1, le=1)
    least_histogram_change: float = Field(default=0.0, ge=0, le=2)
    plane_side: PositiveInt = 256

    moment_distance: float = Field(default=1 - 0.88, ge=0, le=2)
    event_distance: float = Field(default=1 - 0.80, ge=0, le=2)
    least_distances: PositiveInt = 30
    recent_distances: PositiveInt = 300
    event_relaxation: float = Field(default=0.9, gt=0, le=1)
    event_ms: PositiveInt = 300 * SECOND

    step_ms: PositiveInt = 60 * SECOND
    document_frames: PositiveInt = 8
    document_lines: PositiveInt = 8
    rounds: PositiveInt = 8

    tiers: tuple[AgeTier, ...] = (
        AgeTier(from_age_ms=HOUR, every_ms=20 * SECOND, side=768, quality=70),
        AgeTier(from_age_ms=24 * HOUR, every_ms=120 * SECOND, side=512, quality=45),
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.least_distances > self.recent_distances:
            raise ValueError("fewer distances are remembered than are needed")
        ages = [tier.from_age_ms for tier in self.tiers]
        if ages != sorted(set(ages)):
            raise ValueError("tiers are not in ascending order of age")
        for younger, older in zip(self.tiers, self.tiers[1:], strict=False):
            if older.every_ms % younger.every_ms:
                raise ValueError("intervals of tiers are not multiples of those before")
        return self

    def tier_of(self, age_ms: NonNegativeInt) -> int:
        """Return the tier of frames of an age: 0 for those that all stay."""
        return sum(age_ms >= tier.from_age_ms for tier in self.tiers)
