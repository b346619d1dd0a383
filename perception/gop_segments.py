"""Splits a source into GOP segments, which decode independently with little overlap.

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

from perception.picture_stream import read_pictures
from perception.seeking import KeyPictureFinder

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path

    from domain.media import Clip
    from domain.settings import WatchSettings
    from perception.ordered_pool import StopCheck
    from perception.picture_stream import SampledPicture
    from perception.source import SourceInfo

SEGMENTS_PER_CLIP = 3
"""Stretches of a clip of full length."""
_MAX_LEAD = 1 / 2
"""How long before a clip its key picture may be, as a part of a clip's length: with rarer ones,
stretches would be of very different lengths, and much would be held ahead."""


class GopSegments:
    """Computes where segments start, as far as key pictures are frequent enough; close it.

    Attributes:
        starts: For each segment, the index in ``clips`` that it was cut from and the time in
            milliseconds at or before which its key picture lies.

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
        length = -(-settings.clip_ms // SEGMENTS_PER_CLIP)
        self.starts = [
            (number, ms)
            for number, clip in enumerate(clips)
            for ms in range(clip.span.start_ms, clip.span.end_ms, length)
        ]
        self._keys = KeyPictureFinder(path, info)
        self._key_picture = cache(self._keys.before)
        self._cached_start = cache(self._find_start)
        self._lock = RLock()

    def close(self) -> None:
        """Close the file, once nobody asks any more."""
        self._keys.close()

    def starts_clip(self, number: int) -> bool:
        """Tell whether a segment is the first of its clip."""
        return number == 0 or self.starts[number - 1][0] < self.starts[number][0]

    def has_key_picture_near(self, ms: int) -> bool:
        """Tell whether there is a key picture shortly before a time in milliseconds."""
        with self._lock:
            return ms - self._key_picture(ms) <= _MAX_LEAD * self._settings.clip_ms

    def start_ms(self, number: int) -> int | None:
        """Return the start of a segment in milliseconds; None after the last one."""
        with self._lock:
            return self._cached_start(number)

    def _find_start(self, number: int) -> int | None:
        if number in (0, len(self.starts)):
            return None if number else self.starts[0][1]
        before, ms = self.start_ms(number - 1), self.starts[number][1]
        if before is None or (self.starts_clip(number) and not self.has_key_picture_near(ms)):
            return None
        return max(before, self._key_picture(ms))

    def next_segment(self, number: int) -> int:
        """Return the number of the segment that starts where this one ends."""
        start = self.start_ms(number)
        later = range(number + 1, len(self.starts))
        return next(
            (number_after for number_after in later if self.start_ms(number_after) != start),
            len(self.starts),
        )

    def clips(self, number: int) -> range:
        """Return the numbers of the clips that a segment shows pictures of."""
        start = self._own_start(number)
        if start is None:
            return range(0)
        following = self.next_segment(number)
        end = self.start_ms(following)
        last = self.starts[following - 1][0] if end is None else self._clip_at(end - 1)
        return range(self._clip_at(start), last + 1)

    def pictures(self, number: int, stopped: StopCheck) -> Generator[SampledPicture]:
        """Yield the sampled pictures of a segment; the last one extends to the file's end."""
        start = self._own_start(number)
        if start is None:
            return
        end = self.start_ms(self.next_segment(number))
        with closing(
            read_pictures(self._path, self._info, self._settings, start, end, single_threaded=True)
        ) as pictures:
            yield from takewhile(lambda _: not stopped(), pictures)

    def _own_start(self, number: int) -> int | None:
        """Return a segment's start; None if it is empty, having the start of the one before."""
        start = self.start_ms(number)
        return None if number and self.start_ms(number - 1) == start else start

    def _clip_at(self, ms: int) -> int:
        return (ms - self.starts[0][1]) // self._settings.clip_ms
