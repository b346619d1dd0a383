"""Keeping up with a live source: the level that the next clip is watched at, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from domain.streams import LEVELS

if TYPE_CHECKING:
    from perception.frames import Frame

_CALM = 3
"""Clips in a row that must be easy before more is looked at again."""
_MOST_CALM = 96


@dataclass
class DegradationPolicy:
    """A level up where clips come faster than they are watched, a level down where there is room.

    Where going down was too soon, twice as many clips must be easy before it is tried again.
    """

    level: int = 0
    _easy: int = 0
    _calm: int = _CALM
    _tried: bool = False

    def after(self, took_ms: int, length_ms: int, waiting: int) -> int:
        """The level after a clip of ``length_ms`` that took ``took_ms``; ``waiting`` clips wait."""
        if took_ms > length_ms or waiting > 1:
            self._harder()
        elif waiting == 0 and took_ms * 2 < length_ms:
            self._easier()
        else:
            self._easy = 0
        return self.level

    def _harder(self) -> None:
        if self._tried:
            self._calm = min(2 * self._calm, _MOST_CALM)
        self.level, self._easy, self._tried = min(self.level + 1, len(LEVELS) - 1), 0, False

    def _easier(self) -> None:
        self._easy += 1
        if self.level and self._easy >= self._calm:
            self.level, self._easy, self._tried = self.level - 1, 0, True


def thinned(frames: Sequence[Frame], had: int, level: int) -> list[Frame]:
    """Of frames that were sampled at level ``had``, those that ``level`` looks at.

    A cut between two of them is not lost: each frame has the greatest change since the one before.
    """
    step = max(1, round(LEVELS[had].share / LEVELS[level].share))
    return [_last_of(frames[max(0, at - step + 1) : at + 1]) for at in range(0, len(frames), step)]


def _last_of(frames: Sequence[Frame]) -> Frame:
    *_, last = frames
    most = max(frames, key=lambda frame: frame.marks.change).marks
    return replace(last, marks=replace(last.marks, change=most.change, alike=most.alike))
