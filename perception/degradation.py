"""Chooses the degradation level of the next clip of a live source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from domain.streams import LEVELS

if TYPE_CHECKING:
    from perception.frames import Frame

_EASY_CLIPS = 3
"""Clips in a row that must be easy before more is looked at again."""
_MAX_EASY_CLIPS = 96


@dataclass
class DegradationPolicy:
    """Raises the level while clips arrive faster than they are perceived, and lowers it otherwise.

    Where going down was too soon, twice as many clips must be easy before it is tried again.
    """

    level: int = 0
    _easy: int = 0
    _easy_needed: int = _EASY_CLIPS
    _just_lowered: bool = False

    def update(self, took_ms: int, length_ms: int, waiting: int) -> int:
        """Return the level after a clip.

        Args:
            took_ms: How long the clip took to perceive.
            length_ms: How long the clip is.
            waiting: How many clips wait in the buffer.
        """
        if took_ms > length_ms or waiting > 1:
            self._degrade()
        elif waiting == 0 and took_ms * 2 < length_ms:
            self._easy += 1
            if self.level and self._easy >= self._easy_needed:
                self.level, self._easy, self._just_lowered = self.level - 1, 0, True
        else:
            self._easy = 0
        return self.level

    def _degrade(self) -> None:
        if self._just_lowered:
            self._easy_needed = min(2 * self._easy_needed, _MAX_EASY_CLIPS)
        self.level, self._easy, self._just_lowered = min(self.level + 1, len(LEVELS) - 1), 0, False


def subsample_frames(frames: Sequence[Frame], sampled_level: int, level: int) -> list[Frame]:
    """Select the frames of ``level`` from frames that were sampled at ``sampled_level``.

    A cut between two of them is not lost: each frame has the greatest change since the one before.
    """
    step = max(1, round(LEVELS[sampled_level].share / LEVELS[level].share))
    return [
        _merge_frames(frames[max(0, at - step + 1) : at + 1]) for at in range(0, len(frames), step)
    ]


def _merge_frames(frames: Sequence[Frame]) -> Frame:
    *_, last = frames
    most_changed = max(frames, key=lambda frame: frame.metrics.change).metrics
    return replace(
        last,
        metrics=replace(
            last.metrics,
            change=most_changed.change,
            layout_similarity=most_changed.layout_similarity,
        ),
    )
