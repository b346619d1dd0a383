"""Seeks in a stream so that decoding is exact from a given time on."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import av

from perception.containers import (
    Packet,
    StreamClock,
    demux,
    open_media,
    read_packets,
    require_audio_stream,
    require_video_stream,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from av.audio.stream import AudioStream
    from av.container import InputContainer
    from av.video.stream import VideoStream

    from perception.source import SourceInfo

_MARGINS_MS = (0, 1_000, 4_000, 16_000, 64_000)


def open_before(path: Path, info: SourceInfo, kind: str, ms: int) -> InputContainer:
    """Open the source so that the next packets of its ``kind`` begin with a key packet.

    That packet's time is at or before ``ms``. Containers seek by decoding time, or to any packet,
    so the landing is checked and tried again from further back; the start of the file always does.
    """
    container = open_media(path)
    if ms <= 0:
        return container
    found = _seek_target(container, info, kind, ms)
    if found is not None:
        _seek(container, info, kind, found[0])
        return container
    container.close()
    return open_media(path)


class KeyPictureFinder:
    """Finds the key picture before a time, with one open file; close it.

    Args:
        path: a media file.
        info: what was probed of it, pictures among it.

    Raises:
        MediaError: the file went away or is no longer what was probed.
    """

    def __init__(self, path: Path, info: SourceInfo) -> None:
        self._path, self._info = path, info
        self._container = open_media(path)
        require_video_stream(self._container, path)

    def close(self) -> None:
        """Close the file."""
        self._container.close()

    def before(self, ms: int) -> int:
        """Return the time of the key picture at or before ``ms``; ``ms`` if the first is later."""
        found = _seek_target(self._container, self._info, "video", ms)
        return self._first_key_time(ms) if found is None else found[1]

    def _first_key_time(self, ms: int) -> int:
        self.close()
        self._container = open_media(self._path)
        stream, base = require_video_stream(self._container, self._path)
        pts = _first_key_pts(read_packets(self._container, stream))
        return 0 if pts is None else min(ms, StreamClock(base, self._info.origin).ms(pts))


def _seek_target(
    container: InputContainer, info: SourceInfo, kind: str, ms: int
) -> tuple[int, int] | None:
    """Return where to seek so that a key packet at or before ``ms`` comes first, and its time."""
    for margin in _MARGINS_MS:
        if ms - margin <= 0:
            return None
        key_time = _key_time_after_seek(container, info, kind, ms - margin)
        if key_time is not None and key_time <= ms:
            return ms - margin, key_time
    return None


def _key_time_after_seek(
    container: InputContainer, info: SourceInfo, kind: str, target_ms: int
) -> int | None:
    """Return the time of the first key packet after seeking; None if there is none."""
    try:
        stream, base = _seek(container, info, kind, target_ms)
        pts = _first_key_pts(demux(container, stream))
    except av.FFmpegError:
        return None
    return None if pts is None else StreamClock(base, info.origin).ms(pts)


def _first_key_pts(packets: Iterable[Packet]) -> int | None:
    return next((p.pts for p in packets if p.pts is not None and p.is_keyframe), None)


def _seek(
    container: InputContainer, info: SourceInfo, kind: str, ms: int
) -> tuple[VideoStream | AudioStream, Fraction]:
    find = require_video_stream if kind == "video" else require_audio_stream
    stream, base = find(container, Path(container.name))
    container.seek(int((info.origin + Fraction(ms, 1000)) / base), stream=stream)
    return stream, base
