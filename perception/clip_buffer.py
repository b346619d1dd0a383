"""Buffers captured clips that wait to be perceived: a bounded queue that drops none silently."""

from __future__ import annotations

from collections import deque
from threading import Condition
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perception.live_clips import CapturedClip

_POLL_S = 0.5
"""A thread that waits wakes so often, so that Ctrl-C is heard everywhere."""


class ClipBuffer:
    """Passes clips from the thread that reads a source to the one that perceives them."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._clips: deque[CapturedClip] = deque()
        self._changed = Condition()
        self._ended = self._cancelled = False

    def __len__(self) -> int:
        return len(self._clips)

    def put(self, clip: CapturedClip, *, wait: bool) -> bool:
        """Add a clip; return False if cancelled, or full and ``wait`` is False."""
        with self._changed:
            while wait and len(self._clips) >= self._capacity and not self._cancelled:
                self._changed.wait(_POLL_S)
            if self._cancelled or len(self._clips) >= self._capacity:
                return False
            self._clips.append(clip)
            self._changed.notify_all()
            return True

    def get(self, *, wait: bool) -> CapturedClip | None:
        """Remove and return the oldest clip.

        Returns:
            None at the end, or where the buffer is empty and ``wait`` is False. After ``finish``,
            the remaining clips are still returned.
        """
        with self._changed:
            while wait and not self._clips and not self._ended:
                self._changed.wait(_POLL_S)
            if not self._clips:
                return None
            self._changed.notify_all()
            return self._clips.popleft()

    def finish(self) -> None:
        """Mark the end: no clip will be added."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def cancel(self) -> None:
        """Discard the clips and refuse further ones: nobody will read them."""
        with self._changed:
            self._cancelled = True
            self._clips.clear()
            self._changed.notify_all()
