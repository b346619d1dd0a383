"""Adaptive deduplication: what looks alike is one moment, of which first and last frame stay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from domain.base import Frozen
from strategies.vam.thresholds import AdaptiveThreshold
from strategies.vam.vectors import distance

if TYPE_CHECKING:
    from models.ports import Vector
    from strategies.vam.settings import VisualMemorySettings


class MomentState(Frozen):
    """What is carried on: the present moment, and the distances seen lately.

    ``vectors`` names what ``reference`` is of; ``reference`` is the vector of the moment's first
    frame; ``start_ms`` is None before the first moment, ``end_ms`` None while the moment has one
    frame.
    """

    vectors: str = ""
    start_ms: int | None = None
    end_ms: int | None = None
    reference: tuple[float, ...] = ()
    recent: tuple[float, ...] = ()


@dataclass(frozen=True)
class MomentStep:
    """What a frame is: the first of a new moment, else the end of the present one so far.

    ``change`` is its distance to the first frame of the moment before; ``replaced_ms`` is the
    frame that was the end so far and is so no longer.
    """

    starts: bool
    change: float
    replaced_ms: int | None = None


class Moments:
    """Divides the frames that passed the gates into moments, strictly in order of time.

    Args:
        vectors: the name of the vectors; those of another name are forgotten.
    """

    def __init__(
        self, settings: VisualMemorySettings, vectors: str, state: MomentState | None = None
    ) -> None:
        known = state or MomentState()
        comparable = known.vectors == vectors
        self._vectors = vectors
        self._start, self._end = known.start_ms, known.end_ms
        self._reference = np.asarray(known.reference if comparable else (), np.float32)
        self._threshold = AdaptiveThreshold(
            settings.moment_distance,
            settings.least_distances,
            settings.recent_distances,
            recent=known.recent if comparable else (),
        )

    @property
    def state(self) -> MomentState:
        """Return what is carried on."""
        return MomentState(
            vectors=self._vectors,
            start_ms=self._start,
            end_ms=self._end,
            reference=tuple(self._reference.tolist()),
            recent=self._threshold.recent,
        )

    def add(self, time_ms: int, vector: Vector) -> MomentStep:
        """Add the next frame that passed the gates.

        At or under the threshold it waits as the end of the present moment; above it that end is
        committed, and the frame is the reference of the next.
        """
        if not self._reference.size:
            return self._begin(time_ms, vector, 0.0)
        change = distance(self._reference, vector)
        above = change > self._threshold.value
        self._threshold.add(change)
        if above:
            return self._begin(time_ms, vector, change)
        replaced, self._end = self._end, time_ms
        return MomentStep(starts=False, change=change, replaced_ms=replaced)

    def _begin(self, time_ms: int, vector: Vector, change: float) -> MomentStep:
        self._start, self._end, self._reference = time_ms, None, vector
        return MomentStep(starts=True, change=change)
