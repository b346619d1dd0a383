"""Going to a moment of a stream so that what is shown or heard there decodes exactly."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import av

from perception.media import Clock, demuxed, open_media, packets_of, picture_stream, sound_stream

if TYPE_CHECKING:
    from av.audio.stream import AudioStream
    from av.container import InputContainer
    from av.video.stream import VideoStream

    from perception.source import SourceInfo

_MARGINS_MS = (0, 1_000, 4_000, 16_000, 64_000)


def open_before(path: Path, info: SourceInfo, kind: str, ms: int) -> InputContainer:
    """The source, opened so that the next packets of its ``kind`` begin with a key packet.

    That packet's time is at or before ``ms``. Containers seek by decoding time, or to any packet,
    so the landing is checked and tried again from further back; the start of the file always does.
    """
    container = open_media(path)
    if ms <= 0:
        return container
    for margin in _MARGINS_MS:
        if ms - margin <= 0:
            break
        if _lands_before(container, info, kind, ms, ms - margin):
            _seek(container, info, kind, ms - margin)
            return container
    container.close()
    return open_media(path)


def lead_ms(path: Path, info: SourceInfo, ms: int) -> int:
    """How long before a moment the pictures that it needs begin, in milliseconds.

    Raises:
        MediaError: the file went away or is no longer what was probed.
    """
    with open_before(path, info, "video", ms) as container:
        stream, base = picture_stream(container, path)
        clock = Clock(base, info.origin)
        for packet in packets_of(container, stream):
            if packet.pts is not None and packet.is_keyframe:
                return max(0, ms - clock.ms(packet.pts))
    return ms


def _lands_before(
    container: InputContainer, info: SourceInfo, kind: str, ms: int, target_ms: int
) -> bool:
    try:
        stream = _seek(container, info, kind, target_ms)
        for packet in demuxed(container, stream):
            if packet.pts is not None and packet.is_keyframe:
                return Clock(packet.time_base, info.origin).ms(packet.pts) <= ms
    except av.FFmpegError:
        return False
    return False


def _seek(
    container: InputContainer, info: SourceInfo, kind: str, ms: int
) -> VideoStream | AudioStream:
    find = picture_stream if kind == "video" else sound_stream
    stream, base = find(container, Path(container.name))
    container.seek(int((info.origin + Fraction(ms, 1000)) / base), stream=stream)
    return stream
