"""Videos with tracks of subtitles and chapters inside, of every kind that is common."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import av

Cue = tuple[int, int, str]
"""When it begins and ends, in milliseconds, and its words."""

ASS = """[Script Info]
ScriptType: v4.00+

[V4+ Styles]
Format: Name, Fontname, Fontsize, PrimaryColour, SecondaryColour, OutlineColour, BackColour, Bold, \
Italic, Underline, StrikeOut, ScaleX, ScaleY, Spacing, Angle, BorderStyle, Outline, Shadow, \
Alignment, MarginL, MarginR, MarginV, Encoding
Style: Default,Arial,20,&H00FFFFFF,&H000000FF,&H00000000,&H00000000,0,0,0,0,100,100,0,0,1,1,0,2,\
10,10,10,1

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
""".replace("\\\n", "")


def words_file(path: Path, cues: Sequence[Cue]) -> Path:
    """A file of subtitles in the format of its ending: srt, vtt or ass."""
    kind = path.suffix[1:]
    head = {"srt": "", "vtt": "WEBVTT\n\n", "ass": ASS}[kind]
    path.write_text(head + "".join(_told(kind, n, *cue) for n, cue in enumerate(cues, 1)))
    return path


def _told(kind: str, number: int, start_ms: int, end_ms: int, text: str) -> str:
    if kind == "ass":
        line = text.replace("\n", "\\N")
        times = f"{_clock(start_ms, '.')[1:-1]},{_clock(end_ms, '.')[1:-1]}"
        return f"Dialogue: 0,{times},Default,,0,0,0,,{line}\n"
    mark = "," if kind == "srt" else "."
    name = f"{number}\n" if kind == "srt" else ""
    return f"{name}{_clock(start_ms, mark)} --> {_clock(end_ms, mark)}\n{text}\n\n"


def _clock(ms: int, mark: str) -> str:
    seconds, rest = divmod(ms, 1000)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{mark}{rest:03}"


def with_words(
    source: Path, words: Path, path: Path, language: str = "", chapters: Sequence[str] = ()
) -> Path:
    """The pictures of ``source`` with the subtitles of a file as a track, and chapters of 3 s."""
    with (
        av.open(str(source)) as pictures,
        av.open(str(words)) as text,
        av.open(str(path), "w") as out,
    ):
        streams = (pictures.streams.video[0], text.streams.subtitles[0])
        copies: list[Any] = [out.add_stream_from_template(stream) for stream in streams]
        if language:
            copies[1].metadata["language"] = language
        if chapters:
            out.set_chapters([_chapter(n, title) for n, title in enumerate(chapters)])
        for container, stream, copy in zip((pictures, text), streams, copies, strict=True):
            _copy(container, stream, copy, out)
    return path


def _copy(container: Any, stream: Any, copy: Any, out: Any) -> None:
    for packet in container.demux(stream):
        if packet.dts is not None:
            packet.stream = copy
            out.mux(packet)


def _chapter(number: int, title: str) -> Any:
    times = {"start": 3000 * number, "end": 3000 * number + 3000, "time_base": Fraction(1, 1000)}
    return {"id": number, **times, "metadata": {"title": title}}


def with_packets(source: Path, codec: str, path: Path, cues: Sequence[Cue]) -> Path:
    """The pictures of ``source`` with a track of ``codec``: MP4's text, or pictures of text."""
    with av.open(str(source)) as pictures, av.open(str(path), "w") as out:
        stream = pictures.streams.video[0]
        copy = out.add_stream_from_template(stream)
        track: Any = out.add_stream(codec)
        if codec == "mov_text":
            track.codec_context.subtitle_header = ASS.encode()
        _copy(pictures, stream, copy, out)
        for start_ms, end_ms, text in cues:
            data = text.encode()
            packet = av.Packet(len(data).to_bytes(2, "big") + data)
            packet.stream, packet.time_base = track, Fraction(1, 1000)
            packet.pts = packet.dts = start_ms
            packet.duration = end_ms - start_ms
            out.mux(packet)
    return path
