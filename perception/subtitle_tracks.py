"""Texts that a container carries beside pictures and sound: tracks of subtitles, and chapters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import av
from av.subtitles.subtitle import AssSubtitle

from domain.time import TimeSpan
from perception.containers import StreamClock, demux, open_media

if TYPE_CHECKING:
    from av.container import InputContainer

    from perception.source import SourceInfo

TEXT_CODECS = frozenset({"subrip", "srt", "ass", "ssa", "mov_text", "webvtt", "text"})
"""Tracks of text; others are pictures of text."""


@dataclass(frozen=True)
class Cue:
    """One timed text; lines are apart by line ends."""

    span: TimeSpan
    text: str


@dataclass(frozen=True)
class TextTrack:
    """A track of cues in order of time. ``language``: as the container states it, or empty."""

    number: int
    language: str
    cues: tuple[Cue, ...]


def text_tracks(path: Path, info: SourceInfo) -> tuple[TextTrack, ...]:
    """The tracks of subtitles inside ``path`` that hold text, in order; times are video time.

    What does not decode is left out.

    Raises:
        MediaError: the file went away or is not media.
    """
    with open_media(path) as container:
        numbers = [one.index for one in container.streams.subtitles if _codec(one) in TEXT_CODECS]
    tracks = (_track(path, info, number) for number in numbers)
    return tuple(track for track in tracks if track.cues)


def unread_tracks(path: Path) -> tuple[tuple[int, str], ...]:
    """Number and codec of the tracks of subtitles that are pictures of text, or not known.

    Raises:
        MediaError: the file went away or is not media.
    """
    with open_media(path) as container:
        codecs = {one.index: _codec(one) for one in container.streams.subtitles}
    return tuple((number, name) for number, name in codecs.items() if name not in TEXT_CODECS)


def _codec(stream: Any) -> str:
    return stream.codec_context.name if stream.codec_context is not None else "unknown"


def _track(path: Path, info: SourceInfo, number: int) -> TextTrack:
    with open_media(path) as container:
        stream = container.streams[number]
        cues = sorted(_cues(container, number, info), key=_by_time)
        return TextTrack(number, _language(stream.metadata), tuple(cues))


def _by_time(cue: Cue) -> tuple[int, int]:
    return cue.span.start_ms, cue.span.end_ms


def _language(metadata: dict[str, str]) -> str:
    stated = metadata.get("language", "")
    return "" if stated == "und" else stated


def _cues(container: InputContainer, number: int, info: SourceInfo) -> Iterator[Cue]:
    stream = container.streams[number]
    packets: Iterator[Any] = demux(container, stream)
    while True:
        try:
            packet = next(packets)
            if packet.pts is not None:
                yield from _decoded(packet, info)
        except StopIteration:
            return
        except av.FFmpegError:
            continue


def _decoded(packet: Any, info: SourceInfo) -> Iterator[Cue]:
    clock = StreamClock(packet.time_base, info.origin)
    start = clock.ms(packet.pts)
    end = clock.ms(packet.pts + (packet.duration or 0))
    for part in packet.decode():
        text = part.dialogue.decode("utf-8", "replace") if isinstance(part, AssSubtitle) else ""
        if text.strip() and end > 0:
            yield Cue(TimeSpan.of(max(0, start), max(0, start, end)), text)


def chapters(path: Path, info: SourceInfo) -> tuple[Cue, ...]:
    """The chapters of ``path`` that have a title, in order; times are video time.

    Raises:
        MediaError: the file went away or is not media.
    """
    with open_media(path) as container:
        found = [_chapter(chapter, info) for chapter in container.chapters()]
    return tuple(sorted((cue for cue in found if cue is not None), key=_by_time))


def _chapter(chapter: Any, info: SourceInfo) -> Cue | None:
    title = chapter["metadata"].get("title", "").strip()
    if not title or not chapter["time_base"]:
        return None
    clock = StreamClock(chapter["time_base"], info.origin)
    start, end = max(0, clock.ms(chapter["start"])), clock.ms(chapter["end"])
    return Cue(TimeSpan.of(start, max(start, end)), title)
