"""A source in stretches from key picture to key picture: hardly a picture is decoded by two.

Decoding can begin at key pictures alone. So a stretch begins at the key picture before a moment,
and ends where the next one begins. Moments are the starts of clips, and some in between, so that
who decodes stretches beside each other does not wait long for one of them.
"""

from __future__ import annotations

from contextlib import closing
from functools import cache
from itertools import takewhile
from threading import RLock
from typing import TYPE_CHECKING

from perception.picture_stream import Pictures
from perception.seeking import KeyPictures

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path

    from domain.media import Clip
    from domain.settings import WatchSettings
    from perception.ordered_pool import Stopped
    from perception.picture_stream import ShownPicture
    from perception.source import SourceInfo

A_CLIP = 3
"""Stretches of a clip of full length."""
_MOST_LEAD = 1 / 2
"""How long before a clip its key picture may be, as a part of a clip's length: with rarer ones,
stretches would be of very different lengths, and much would be held ahead."""


class GopSegments:
    """Where clips are cut, as far as there are key pictures enough; close it.

    Attributes:
        marks: of each stretch the clip that it was cut from, by number, and the moment before which
            its key picture is, in milliseconds.

    Args:
        path: a media file.
        info: what was probed of it, pictures among it.
        settings: how it is watched.
        clips: what is to be read, one after the other.

    Raises:
        MediaError: the file went away or is no longer what was probed.
    """

    def __init__(
        self, path: Path, info: SourceInfo, settings: WatchSettings, clips: Sequence[Clip]
    ) -> None:
        self._path, self._info, self._settings = path, info, settings
        length = -(-settings.clip_ms // A_CLIP)
        self.marks = [
            (number, ms)
            for number, clip in enumerate(clips)
            for ms in range(clip.span.start_ms, clip.span.end_ms, length)
        ]
        self._keys = KeyPictures(path, info)
        self._key = cache(self._keys.before)
        self._start = cache(self._find)
        self._lock = RLock()

    def close(self) -> None:
        """Let go of the file, once nobody asks any more."""
        self._keys.close()

    def opens(self, number: int) -> bool:
        """Whether a stretch is the first of its clip."""
        return number == 0 or self.marks[number - 1][0] < self.marks[number][0]

    def is_near(self, ms: int) -> bool:
        """Whether there is a key picture not long before a moment."""
        with self._lock:
            return ms - self._key(ms) <= _MOST_LEAD * self._settings.clip_ms

    def start_ms(self, number: int) -> int | None:
        """From when on a stretch is shown; None for those behind the last."""
        with self._lock:
            return self._start(number)

    def _find(self, number: int) -> int | None:
        if number in (0, len(self.marks)):
            return None if number else self.marks[0][1]
        before, ms = self.start_ms(number - 1), self.marks[number][1]
        if before is None or (self.opens(number) and not self.is_near(ms)):
            return None
        return max(before, self._key(ms))

    def following(self, number: int) -> int:
        """The number of the stretch that begins where this one ends, be it behind the last."""
        start = self.start_ms(number)
        later = range(number + 1, len(self.marks))
        return next((one for one in later if self.start_ms(one) != start), len(self.marks))

    def clips(self, number: int) -> range:
        """The numbers of the clips that a stretch shows something of."""
        start = self._own_start(number)
        if start is None:
            return range(0)
        behind = self.following(number)
        end = self.start_ms(behind)
        last = self.marks[behind - 1][0] if end is None else self._clip_at(end - 1)
        return range(self._clip_at(start), last + 1)

    def shown(self, number: int, stopped: Stopped) -> Generator[ShownPicture]:
        """What the sample instants of a stretch show; where none follows, to the file's end."""
        start = self._own_start(number)
        if start is None:
            return
        end = self.start_ms(self.following(number))
        with closing(
            Pictures(self._path, self._info, self._settings, start, end, alone=True)
        ) as pictures:
            yield from takewhile(lambda _: not stopped(), pictures)

    def _own_start(self, number: int) -> int | None:
        """None for an empty one too: one before it begins at the same key picture."""
        start = self.start_ms(number)
        return None if number and self.start_ms(number - 1) == start else start

    def _clip_at(self, ms: int) -> int:
        return (ms - self.marks[0][1]) // self._settings.clip_ms
