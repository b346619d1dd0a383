"""Opens media files, local ones in known containers only, and reads their subtitles and chapters.

A file has one video and one audio stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

import av
from av.audio.stream import AudioStream
from av.stream import Disposition, Stream
from av.subtitles.subtitle import AssSubtitle
from av.video.stream import VideoStream

from domain.errors import MediaError
from domain.time import TimeSpan
from domain.words import marked

if TYPE_CHECKING:
    from av.container import InputContainer

    from perception.source import SourceProbe


Packet: TypeAlias = "av.Packet[Any]"

# FFmpeg can follow playlists and scripts to other files and hosts, and takes plain text for ANSI
# art. A video may come from anyone, so both are closed: no protocol but ``file``, no format that is
# not listed here.
FORMATS = (
    "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpegts,mpeg,mpegvideo,flv,asf,ogg,wav,w64,mp3,"
    "flac,aac,ac3,eac3,aiff,caf,amr,au,gif,mxf,nut,m4v,h264,hevc,ivf,av1,obu,dv,rm,wtv,wv,tta,ape"
)
"""Names of the demuxers that may read a source."""

_OPTIONS = {"format_whitelist": FORMATS, "protocol_whitelist": "file"}
_READ_FAILURES = 100
_MP4_ATOMS = frozenset({b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide", b"pnot"})
_NOT_MOVING = Disposition.attached_pic | Disposition.still_image | Disposition.timed_thumbnails


def open_media(path: Path, first_byte: int = 0, end_byte: int = 0) -> InputContainer:
    """Open ``path`` for reading: all of it, or a file within it.

    Args:
        first_byte: where what is read begins.
        end_byte: where it ends; 0: where the file does.

    Raises:
        MediaError: the file is not there, is empty, or is not video or audio.
    """
    refuse_unreadable(path)
    url, options = str(path.resolve()), _OPTIONS
    if first_byte or end_byte:
        url = f"subfile,,start,{first_byte},end,{end_byte},,:{url}"
        options = {**_OPTIONS, "protocol_whitelist": "file,subfile"}
    try:
        return av.open(url, "r", options=options, metadata_errors="replace")
    except av.FFmpegError as error:
        if isinstance(error, PermissionError):
            raise MediaError(marked(f"{path}: no permission to read it")) from error
        said = marked(f"{path}: not a video or audio file, or damaged beyond reading")
        raise MediaError(said) from error


def refuse_unreadable(path: Path) -> None:
    """Raise a MediaError for a path that is not a file with content."""
    if not path.exists():
        raise MediaError(f"{path}: no such file")
    if not path.is_file():
        raise MediaError(f"{path}: not a file")
    if path.stat().st_size == 0:
        raise MediaError(f"{path}: the file is empty")


def reject_truncated(path: Path) -> None:
    """Raise a MediaError for an MP4 or MOV file that ends before its own index says it does.

    Files written in fragments (live recordings) are whole up to any fragment, and pass.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        atoms = list(_mp4_atoms(file, size))
    if not atoms or atoms[0][0] not in _MP4_ATOMS:
        return
    names = {name for name, _ in atoms}
    truncated = atoms[-1][1] > size
    if b"moof" not in names and (truncated or b"moov" not in names):
        raise MediaError(f"{path}: the file is cut short; copy or download it again")


def _mp4_atoms(file: BinaryIO, size: int) -> Iterator[tuple[bytes, int]]:
    """Yield name and end offset of each top-level atom, up to the first invalid one."""
    offset = 0
    while offset + 8 <= size:
        file.seek(offset)
        header = file.read(16)
        length, name = int.from_bytes(header[:4]), header[4:8]
        if length == 1:
            length = int.from_bytes(header[8:16])
        elif length == 0:
            length = size - offset
        if length < 8 or not name.isascii():
            return
        offset += length
        yield name, offset


def video_stream(container: InputContainer) -> VideoStream | None:
    """Return the video stream to decode, if any; cover art does not count."""
    best = container.streams.best("video")
    candidates = [best] if isinstance(best, VideoStream) else []
    streams = (*candidates, *container.streams.video)
    usable = [s for s in streams if _decodable(s) and not s.disposition & _NOT_MOVING]
    return usable[0] if usable else None


def audio_stream(container: InputContainer, index: int | None = None) -> AudioStream | None:
    """Return the audio stream to decode, if any: the one of that index, else the main one."""
    best, tracks = container.streams.best("audio"), audio_tracks(container)
    asked = [one for one in tracks if one.index == index]
    return next(iter([*asked, *(one for one in tracks if one == best), *tracks]), None)


def audio_tracks(container: InputContainer) -> list[AudioStream]:
    """Return the streams of sound that can be decoded, in order."""
    return [one for one in container.streams.audio if _decodable(one)]


def _decodable(stream: AudioStream | VideoStream) -> bool:
    return stream.codec_context is not None


def origin(container: InputContainer) -> Fraction:
    """Return the container time at which video time 0 lies.

    Returns:
        Seconds: the start of the first stream.
    """
    streams = (video_stream(container), audio_stream(container))
    starts = [
        s.start_time * s.time_base
        for s in streams
        if s is not None and s.start_time is not None and s.time_base is not None
    ]
    if starts:
        return min(starts)
    return Fraction(container.start_time or 0, 1_000_000)


class StreamClock:
    """Converts time stamps of a stream into whole milliseconds of video time.

    Rounds up, so that at the time it gives, what bears the stamp is already shown.
    """

    def __init__(self, base: Fraction, zero: Fraction) -> None:
        shift, scale = zero * 1000, base * 1000
        self._times = scale.numerator * shift.denominator
        self._minus = shift.numerator * scale.denominator
        self._over = scale.denominator * shift.denominator

    def ms(self, pts: int) -> int:
        """Return milliseconds from the video's start; negative before it."""
        return -(-(pts * self._times - self._minus) // self._over)


def demux(container: InputContainer, streams: Sequence[Stream]) -> Iterator[Any]:
    """Yield packets of these streams in order, with an empty packet of each at the end.

    Raises:
        av.FFmpegError: a stretch cannot be read; called again, it goes on after that.
    """
    packets = container.demux(list(streams))
    while True:
        try:
            packet = next(packets, None)
        except IndexError:
            # Streams that began after the file was opened are not known to PyAV at the file's end.
            return
        if packet is None:
            return
        yield packet


def read_packets(container: InputContainer, streams: Sequence[Stream]) -> Iterator[Packet]:
    """Yield the streams' packets to the end of the file, skipping what cannot be read."""
    packets: Iterator[Packet] = demux(container, streams)
    failures = 0
    while failures < _READ_FAILURES:
        try:
            packet = next(packets, None)
        except av.FFmpegError:
            packets, failures = demux(container, streams), failures + 1
            continue
        if packet is None:
            return
        yield packet


TEXT_CODECS = frozenset({"subrip", "srt", "ass", "ssa", "mov_text", "webvtt", "text"})
"""Tracks of text; others are pictures of text."""


@dataclass(frozen=True)
class Cue:
    """One timed text; its lines are separated by line ends."""

    span: TimeSpan
    text: str


@dataclass(frozen=True)
class SubtitleStream:
    """A subtitle stream of a container. ``language``: as the container states it, or empty."""

    number: int
    codec: str
    language: str

    @property
    def is_text(self) -> bool:
        """Tell whether its cues are text."""
        return self.codec in TEXT_CODECS


@dataclass(frozen=True)
class TextTrack:
    """A track of cues in order of time. ``language``: as the container states it, or empty."""

    number: int
    language: str
    cues: tuple[Cue, ...]


def subtitle_streams(container: InputContainer) -> tuple[SubtitleStream, ...]:
    """Return the subtitle streams of an open container, in order."""
    return tuple(
        SubtitleStream(
            one.index,
            one.codec_context.name if one.codec_context is not None else "unknown",
            _language(one.metadata),
        )
        for one in container.streams.subtitles
    )


def _language(metadata: dict[str, str]) -> str:
    stated = metadata.get("language", "")
    return "" if stated == "und" else stated


def text_tracks(path: Path, probed: SourceProbe) -> tuple[TextTrack, ...]:
    """Return the subtitle tracks inside ``path`` that hold text, in order; times are video time.

    The file is read once, for all of them, if there are any. What does not decode is left out.

    Raises:
        MediaError: the file went away or is not media.
    """
    streams = [one for one in probed.subtitles if one.is_text]
    if not streams:
        return ()
    cues: dict[int, list[Cue]] = {one.number: [] for one in streams}
    for part in probed.info.parts:
        with part.open(path) as container:
            for number, cue in _cues(container, list(cues), part.origin):
                if part.span.start_ms <= cue.span.start_ms < part.span.end_ms:
                    cues[number].append(cue)
    tracks = (
        TextTrack(one.number, one.language, tuple(sorted(cues[one.number], key=_by_time)))
        for one in streams
    )
    return tuple(track for track in tracks if track.cues)


def _by_time(cue: Cue) -> tuple[int, int]:
    return cue.span.start_ms, cue.span.end_ms


def _cues(
    container: InputContainer, numbers: Sequence[int], zero: Fraction
) -> Iterator[tuple[int, Cue]]:
    """Yield the cues of these streams, each with its stream's number."""
    packets: Iterator[Any] = demux(container, [container.streams[one] for one in numbers])
    while True:
        try:
            packet = next(packets)
            if packet.pts is not None:
                for cue in _decoded(packet, zero):
                    yield packet.stream.index, cue
        except StopIteration:
            return
        except av.FFmpegError:
            continue


def _decoded(packet: Any, zero: Fraction) -> Iterator[Cue]:
    clock = StreamClock(packet.time_base, zero)
    start = clock.ms(packet.pts)
    end = clock.ms(packet.pts + (packet.duration or 0))
    for part in packet.decode():
        text = part.dialogue.decode("utf-8", "replace") if isinstance(part, AssSubtitle) else ""
        if text.strip() and end > 0:
            yield Cue(TimeSpan.of(max(0, start), max(0, start, end)), text)


def chapters_of(container: InputContainer, zero: Fraction) -> tuple[Cue, ...]:
    """Return the chapters of an open container that have a title, in order; times are video time.

    ``zero`` is where video time 0 lies on the container's clock, in seconds.
    """
    found = list[Cue]()
    for chapter in container.chapters():
        title, base = chapter["metadata"].get("title", "").strip(), chapter["time_base"]
        if title and base:
            clock = StreamClock(base, zero)
            start, end = max(0, clock.ms(chapter["start"])), clock.ms(chapter["end"])
            found.append(Cue(TimeSpan.of(start, max(start, end)), title))
    return tuple(sorted(found, key=_by_time))
