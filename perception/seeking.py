"""Seeks in a part of a file so that decoding is exact from a given time on."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

import av
from av.audio.stream import AudioStream
from av.video.stream import VideoStream

from domain.errors import MediaError
from perception.containers import Packet, audio_stream, demux, read_packets, video_stream

if TYPE_CHECKING:
    from collections.abc import Iterable

    from av.container import InputContainer

    from perception.parts import Part
    from perception.source import SourceInfo

Kind = Literal["video", "audio"]
StreamT = TypeVar("StreamT", VideoStream, AudioStream)
_MARGINS_MS = (0, 1_000, 4_000, 16_000, 64_000)


def open_before(path: Path, info: SourceInfo, part: Part, kind: Kind, ms: int) -> InputContainer:
    """Open a part of the source so that its next packets of a ``kind`` begin with a key packet.

    That packet's time is at or before ``ms``. Containers seek by decoding time, or to any packet,
    so the landing is checked and tried again from further back; the start of the part always does.
    """
    container = part.open(path)
    if ms <= 0:
        return container
    found = _seek_target(container, info, part, kind, ms)
    if found is not None:
        _seek(container, info, part, kind, found[0])
        return container
    container.close()
    return part.open(path)


def pictures_of(container: InputContainer) -> tuple[VideoStream, Fraction]:
    """Return the stream of pictures that probing found, with its time base in seconds.

    Raises:
        MediaError: it is not there any more.
    """
    return _present(video_stream(container), container)


def sound_of(container: InputContainer, info: SourceInfo) -> tuple[AudioStream, Fraction]:
    """Return the stream of sound that is heard, with its time base in seconds.

    Raises:
        MediaError: it is not there any more.
    """
    return _present(audio_stream(container, info.audio_index), container)


def _present(stream: StreamT | None, container: InputContainer) -> tuple[StreamT, Fraction]:
    if stream is None or stream.time_base is None:
        path = Path(container.name)
        raise MediaError(f"{path}: the file has changed since it was looked at; ingest it again")
    return stream, stream.time_base


class KeyPictureFinder:
    """Finds the key picture before a time in a file of one part, with one open file; close it.

    Args:
        info: what was probed of it, pictures among it.

    Raises:
        MediaError: the file went away or is no longer what was probed.
    """

    def __init__(self, path: Path, info: SourceInfo) -> None:
        self._path, self._info = path, info
        (self._part,) = info.parts
        self._container = self._part.open(path)
        pictures_of(self._container)

    def close(self) -> None:
        """Close the file."""
        self._container.close()

    def before(self, ms: int) -> int:
        """Return the time of the key picture at or before ``ms``; ``ms`` if the first is later."""
        found = _seek_target(self._container, self._info, self._part, "video", ms)
        if found is not None:
            return found[1]
        self.close()
        self._container = self._part.open(self._path)
        stream, base = pictures_of(self._container)
        pts = _first_key_pts(read_packets(self._container, [stream]))
        return 0 if pts is None else min(ms, self._part.clock(base).ms(pts))


def _seek_target(
    container: InputContainer, info: SourceInfo, part: Part, kind: Kind, ms: int
) -> tuple[int, int] | None:
    """Return where to seek so that a key packet at or before ``ms`` comes first, and its time."""
    for margin in _MARGINS_MS:
        if ms - margin <= part.span.start_ms and (part.is_within or ms - margin <= 0):
            return None
        try:
            stream, base = _seek(container, info, part, kind, ms - margin)
            pts = _first_key_pts(demux(container, [stream]))
        except av.FFmpegError:
            continue
        if pts is not None and (key_time := part.clock(base).ms(pts)) <= ms:
            return ms - margin, key_time
    return None


def _first_key_pts(packets: Iterable[Packet]) -> int | None:
    return next((p.pts for p in packets if p.pts is not None and p.is_keyframe), None)


def _seek(
    container: InputContainer, info: SourceInfo, part: Part, kind: Kind, ms: int
) -> tuple[VideoStream | AudioStream, Fraction]:
    stream, base = pictures_of(container) if kind == "video" else sound_of(container, info)
    container.seek(int((part.origin + Fraction(ms, 1000)) / base), stream=stream)
    return stream, base
