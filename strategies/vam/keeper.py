"""Keeps the frames of moments and events while a video is watched, thinned out with age."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from perception.frame_keeper import FrameChange, FrameToKeep, KeptFrames, State
from strategies.vam.vectors import FrameVectors, frame_vectors
from strategies.vam.visual_memory import VisualChange, VisualMemory, VisualState

if TYPE_CHECKING:
    from domain.media import Clip, Video
    from models.ports import Image, ImageEncoder
    from strategies.vam.settings import VisualMemorySettings


class MomentKeeper:
    """Keeps the first and last frame of each moment."""

    version = 1

    def __init__(self, settings: VisualMemorySettings) -> None:
        self._settings = settings
        self.every_ms = settings.every_ms

    def begin(
        self,
        video: Video,  # noqa: ARG002 - moments are the same of every video
        carried: State,
        encoder: ImageEncoder | None,
    ) -> MomentKeeping:
        """Begin, or go on."""
        return MomentKeeping(
            self._settings, frame_vectors(encoder), VisualState.model_validate(carried)
        )


class MomentKeeping:
    """The keeper at work.

    Args:
        vectors: what distances are measured on.
    """

    def __init__(
        self, settings: VisualMemorySettings, vectors: FrameVectors, state: VisualState
    ) -> None:
        self._settings, self._vectors = settings, vectors.name
        self._memory = VisualMemory(settings, vectors, state)

    def clip(self, clip: Clip, frames: Iterator[tuple[int, Image]]) -> KeptFrames:
        """Keep the frames that stay of a clip, and thin out earlier ones."""
        for time, image in frames:
            self._memory.add(time, image)
        change = self._memory.end_clip(clip.span.end_ms)
        return KeptFrames(
            frames=list(self._kept(change)),
            state=self._memory.state.model_dump(mode="json"),
            dropped=change.dropped,
            changed=list(self._changed(change)),
        )

    def _kept(self, change: VisualChange) -> Iterator[FrameToKeep]:
        for one in change.added.values():
            vector = change.vectors[one.time_ms]
            size = self._size(one.tier)
            yield FrameToKeep(one.time_ms, one.reason, one.tier, *size, vector, self._vectors)

    def _changed(self, change: VisualChange) -> Iterator[FrameChange]:
        for time in sorted(change.reasons.keys() | change.tiers.keys()):
            tier = change.tiers.get(time)
            yield FrameChange(time, change.reasons.get(time), tier, *self._size(tier or 0))

    def _size(self, tier: int) -> tuple[int | None, int | None]:
        """Return the longest side and the JPEG quality of a tier; None: as it is."""
        if tier == 0:
            return None, None
        older = self._settings.tiers[tier - 1]
        return older.side, older.quality
