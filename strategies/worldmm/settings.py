"""The numbers of WorldMM with the paper's defaults, its parts, and the arguments of its tools."""

from __future__ import annotations

from typing import Self

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from agent.strategy import Options, ToolArguments
from domain.base import Frozen

# The numbers of WorldMM, with the paper's defaults.

SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
"""In milliseconds."""

Scales = tuple[PositiveInt, PositiveInt, PositiveInt, PositiveInt]
"""Lengths of windows in milliseconds, finest first."""


class WorldMemorySettings(Frozen):
    """Settings of WorldMM's memory, searches and loop; shares, weights and cosines are in [0, 1].

    ``scales_ms`` are those of videos from ``short_video_ms`` on, ``short_scales_ms`` those of
    shorter ones. ``captions`` found at each scale, finest first; ``captions_kept`` of them are kept
    by the choice across scales.
    """

    scales_ms: Scales = (30 * SECOND, 3 * MINUTE, 10 * MINUTE, HOUR)
    short_scales_ms: Scales = (10 * SECOND, 30 * SECOND, 3 * MINUTE, 10 * MINUTE)
    short_video_ms: PositiveInt = HOUR
    summary_sentences: PositiveInt = 8

    synonym_cosine: float = Field(default=0.8, ge=0, le=1)
    matched_triples: PositiveInt = 5
    damping: float = Field(default=0.5, ge=0, lt=1)
    caption_weight: float = Field(default=0.05, ge=0, le=1)
    captions: tuple[PositiveInt, PositiveInt, PositiveInt, PositiveInt] = (10, 5, 5, 3)
    captions_kept: PositiveInt = 3

    semantic_window_ms: PositiveInt = 10 * MINUTE
    occasions: PositiveInt = 3
    consolidation_cosine: float = Field(default=0.6, ge=0, le=1)
    consolidation_candidates: PositiveInt = 10
    semantic_triples: PositiveInt = 10

    segment_ms: PositiveInt = 10 * SECOND
    frames: PositiveInt = 10
    rounds: PositiveInt = 5

    @model_validator(mode="after")
    def _ascending(self) -> Self:
        for scales in (self.scales_ms, self.short_scales_ms):
            if list(scales) != sorted(set(scales)):
                raise ValueError(f"scales {scales} are not in ascending order")
            if any(scale % scales[0] for scale in scales):
                raise ValueError(f"scales {scales} are not multiples of the finest")
        return self

    def scales(self, length_ms: NonNegativeInt | None) -> Scales:
        """Return the scales of a video.

        Args:
            length_ms: the video's length; None for a stream that goes on.
        """
        short = length_ms is not None and length_ms < self.short_video_ms
        return self.short_scales_ms if short else self.scales_ms


# The parts of WorldMM that can be switched off, to measure what each adds.

GRAPH, SCALES, SEMANTIC, VISUAL = "graph", "scales", "semantic", "visual"

PARTS = {
    GRAPH: "entities and triples: captions are ranked by words and likeness alone",
    SCALES: "coarser captions: only the finest are searched",
    SEMANTIC: "what lasts: it is not searched",
    VISUAL: "kept frames: they are not searched",
}


# The arguments of WorldMM's tools.


class VisualArguments(ToolArguments):
    """What images show, in words, or when they are."""

    query: str = Field(
        min_length=1, description="what they show, or a stretch of time, as in 12:30 - 12:50"
    )


class MemoryArguments(ToolArguments):
    """What to look for, and the options to score what is found by, if any."""

    query: str = Field(min_length=1)
    options: Options = ()
