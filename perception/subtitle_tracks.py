"""Reads subtitle tracks and chapters of a container."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import av
from av.subtitles.subtitle import AssSubtitle

from domain.time import TimeSpan
from perception.containers import StreamClock, demux

if TYPE_CHECKING:
    from av.container import InputContainer

    from perception.source import SourceProbe

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
