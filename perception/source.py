"""Describes a source: its length, streams, identity and clips."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import av

from domain.errors import MediaError
from domain.media import Clip
from domain.time import TimeSpan
from perception.containers import (
    Packet,
    audio_stream,
    demux,
    open_media,
    origin,
    refuse_unreadable,
    reject_truncated,
    video_stream,
)
from perception.subtitle_tracks import Cue, SubtitleStream, chapters_of, subtitle_streams

if TYPE_CHECKING:
    from av.audio.stream import AudioStream
    from av.container import InputContainer
    from av.video.stream import VideoStream

    from domain.settings import WatchSettings

_PICTURES = "mp4 m4v mov mkv webm avi flv wmv asf mpg mpeg ts mts m2ts 3gp ogv mxf gif"
_SOUNDS = "mp3 m4a aac flac wav ogg oga opus wma aiff aif ac3 amr mka"
SUFFIXES = frozenset(f".{name}" for name in f"{_PICTURES} {_SOUNDS}".split())
"""What a folder is searched for. A file that is named is tried whatever its suffix."""

_LENGTH_IS_STATED = ("mov", "matroska", "avi", "wav", "flac", "ogg", "asf", "aiff", "mxf", "gif")
_CHUNK = 1 << 20
_ADDRESS = re.compile(r"(rtsps?|rtmps?|https?|udp|srt):/", re.IGNORECASE)

DAY_MS = 86_400_000
LONGEST_MS = 366 * DAY_MS
"""A longer video is taken for a mistake."""
_ANY_MS, _BYTE_MS = 2 * DAY_MS, 10_000
"""Any file may state two days; beyond that, ten seconds for each of its bytes."""


@dataclass(frozen=True)
class SourceInfo:
    """A readable source. Width and height are in pixels after rotation; 0 without video.

    ``origin`` is where video time 0 lies on the container's clock, in seconds. ``rotation`` is
    the display matrix's, in degrees counter-clockwise: 0, 90, 180 or 270.
    """

    duration_ms: int
    width: int
    height: int
    has_video: bool
    has_audio: bool
    frame_rate: float
    video_codec: str | None
    audio_codec: str | None
    origin: Fraction
    rotation: int = 0
    interlaced: bool = False


@dataclass(frozen=True)
class SourceProbe:
    """What one pass over a file's headers tells, before anything of it is decoded."""

    info: SourceInfo
    subtitles: tuple[SubtitleStream, ...] = ()
    chapters: tuple[Cue, ...] = ()


def probe(path: Path) -> SourceInfo:
    """Read what a source is, as `probe_source` does, without its subtitles and chapters."""
    return probe_source(path).info


def probe_source(path: Path) -> SourceProbe:
    """Read what a source is, opened once, and make sure that something in it decodes.

    Raises:
        MediaError: missing, empty, cut short, not media, without length, or undecodable.
    """
    refuse_unreadable(path)
    reject_truncated(path)
    try:
        with open_media(path) as container:
            info = _describe(path, container)
            return SourceProbe(
                info, subtitle_streams(container), chapters_of(container, info.origin)
            )
    except av.FFmpegError as error:
        raise MediaError(f"{path}: damaged beyond reading ({error.strerror})") from error


def _describe(path: Path, container: InputContainer) -> SourceInfo:
    video, audio = video_stream(container), audio_stream(container)
    if video is None and audio is None:
        raise MediaError(f"{path}: holds no video or audio that can be decoded")
    zero = origin(container)
    stated_ms = _stated_ms(container)
    if stated_ms is not None:
        container.seek(0)
    packets = _TimedPackets(container, [one for one in (video, audio) if one is not None])
    picture = _first_frame(path, packets, has_pictures=video is not None)
    duration_ms = packets.ends_ms(zero) if stated_ms is None else stated_ms
    _refuse_too_long(path, duration_ms)
    if duration_ms <= 0:
        raise MediaError(f"{path}: has no length")
    rotation = round(picture.rotation) % 360 if picture is not None else 0
    width, height = (picture.width, picture.height) if picture is not None else (0, 0)
    if rotation in (90, 270):
        width, height = height, width
    return SourceInfo(
        duration_ms=duration_ms,
        width=width,
        height=height,
        has_video=picture is not None,
        has_audio=audio is not None,
        frame_rate=float(video.average_rate or 0) if video else 0.0,
        video_codec=video.codec_context.name if video else None,
        audio_codec=audio.codec_context.name if audio else None,
        origin=zero,
        rotation=rotation,
        interlaced=picture is not None and picture.interlaced_frame,
    )


def _stated_ms(container: InputContainer) -> int | None:
    """Return the length that the header states, in milliseconds; None where that means little."""
    stated = container.format.name.split(",")[0] in _LENGTH_IS_STATED
    return container.duration // 1000 if stated and container.duration else None


class _TimedPackets:
    """The packets of these streams as they come; iterate it once."""

    def __init__(
        self, container: InputContainer, streams: Sequence[VideoStream | AudioStream]
    ) -> None:
        self._packets = demux(container, *streams)
        self._end = Fraction(0)

    def __iter__(self) -> Iterator[Packet]:
        for packet in self._packets:
            time = packet.pts if packet.pts is not None else packet.dts
            if time is not None:
                self._end = max(self._end, (time + (packet.duration or 0)) * packet.time_base)
            yield packet

    def ends_ms(self, zero: Fraction) -> int:
        """Read the packets that are left; return when the last one ends, in video time."""
        for _ in self:
            continue
        return int((self._end - zero) * 1000)


def _first_frame(path: Path, packets: Iterable[Any], *, has_pictures: bool) -> av.VideoFrame | None:
    """Return the first picture, or None where only sound decodes."""
    heard = False
    for packet in packets:
        try:
            for frame in packet.decode():
                if isinstance(frame, av.VideoFrame):
                    return frame
                heard = True
        except av.FFmpegError:
            continue
        if heard and not has_pictures:
            return None
    if not heard:
        raise MediaError(f"{path}: nothing in it can be decoded")
    return None


def _refuse_too_long(path: Path, duration_ms: int) -> None:
    most = min(LONGEST_MS, max(_ANY_MS, path.stat().st_size * _BYTE_MS))
    if duration_ms > most:
        days = duration_ms // DAY_MS
        raise MediaError(f"{path}: damaged: so small a file cannot hold the {days} days it states")


def video_id(path: Path) -> str:
    """Return the first 16 hex digits of the SHA-256 of the file's content.

    Raises:
        MediaError: the file is missing or empty.
    """
    refuse_unreadable(path)
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()[:16]


def clips_of(duration_ms: int, settings: WatchSettings) -> list[Clip]:
    """Return half-open clips of ``settings.clip_ms`` that cover ``[0, duration_ms)``, in order."""
    starts = range(0, duration_ms, settings.clip_ms)
    return [
        Clip(index=i, span=TimeSpan.of(start, min(start + settings.clip_ms, duration_ms)))
        for i, start in enumerate(starts)
    ]


def find_media(paths: Iterable[Path]) -> list[Path]:
    """Return the files named, and those in the folders named, at any depth; each once, in order.

    Raises:
        MediaError: a path does not exist, or a folder holds no media.
    """
    found = dict.fromkeys(file for path in paths for file in _media_of(path))
    return list(found)


def _media_of(path: Path) -> Iterator[Path]:
    if _ADDRESS.match(str(path)):
        # Not repeated: there may be a password in it.
        raise MediaError("this is an address, not a file: a live source is watched by homer watch")
    if not path.exists():
        raise MediaError(f"{path}: no such file or folder")
    if not path.is_dir():
        yield path
        return
    files = media_in(path)
    if not files:
        raise MediaError(f"{path}: no video or audio files in this folder")
    yield from files


def media_in(folder: Path) -> list[Path]:
    """Return the media files of a folder, at any depth, in order; hidden ones are left out."""
    return sorted(file for file in folder.rglob("*") if _is_media(file))


def _is_media(file: Path) -> bool:
    return file.suffix.lower() in SUFFIXES and not file.name.startswith(".") and file.is_file()
