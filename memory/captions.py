"""Reads timed captions and transcripts, and divides them into the percepts of clips."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import json
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import IO, Any, Literal, cast

import pysubs2
from pysubs2.exceptions import Pysubs2Error

from domain.errors import InputError, NotFound
from domain.media import Clip, Percept, Utterance, Video
from domain.people import escape_tags
from domain.settings import DEFAULT_LIMITS, MB, ImportLimits, WatchSettings
from domain.time import TimeSpan
from memory.cues import spoken_lines

DAY_S = 86_400
MAX_S = 366 * DAY_S
"""The latest time accepted, in seconds: a leap year."""

MAX_NAME = 500
"""Most characters of a video's name in a file that names its videos."""

SUBTITLE_SUFFIXES = (".srt", ".vtt")
"""Suffixes of the files that are read as subtitles."""

CaptionKind = Literal["speech", "caption"]

_BOMS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}

_THREE_DIGIT_HOURS = re.compile(
    r"(?<!\d)\d{3,}+:\d\d:\d\d[.,]\d++(?=\s*+-->)|(?<=-->)\s*+\d{3,}+:\d\d:\d\d"
)
"""Times with three-digit hours, of which pysubs2 reads only the last two digits."""
_WORD_TIMES = re.compile(r"<\d[\d:.]*+>")
"""Times of words within a cue, of which pysubs2 takes a line of two for a cue of its own."""
_BLANK_LINES = re.compile(r"\n{3,}")


class CaptionLine(Utterance):
    """One timed line: said (``speech``) by ``speaker``, or a description (``caption``)."""

    kind: CaptionKind


@dataclass(frozen=True)
class CaptionTrack:
    """All lines about a video in order of time.

    ``id``: the first 16 hex digits of a SHA-256: of the file, or, where lines name their video, of
    the video's name and lines.
    """

    id: str
    title: str
    lines: tuple[CaptionLine, ...]

    def video(self, title: str | None = None, profile: str = "local") -> Video:
        """Return the track as a video without pictures and sound."""
        return Video(
            id=self.id,
            title=title or self.title,
            path=None,
            duration_ms=max(line.span.end_ms for line in self.lines),
            has_video=False,
            has_audio=False,
            profile=profile,
        )


def read_captions(
    path: Path, video: str = "", limits: ImportLimits = DEFAULT_LIMITS
) -> CaptionTrack:
    """Read timed lines from a JSONL (also gzipped), SubRip or WebVTT file.

    A JSONL line has ``start`` and ``end`` in seconds and ``text``. Optional are ``day`` (from 1;
    seconds then count from its midnight), ``kind`` (``speech`` or ``caption``; the default is
    ``speech`` for lines with a speaker), ``speaker`` and ``video``. Other fields are ignored.

    Args:
        video: The video to read, where lines name several.
        limits: Limits on the size of the file.

    Raises:
        NotFound: there is no such file.
        InputError: the file is empty, too large, or cannot be read as what it is called; says
            which line. It names several videos and not ``video``.
    """
    data, named = _read_lines(path, limits)
    if len({video for video, _, _ in named if video}) > 1:
        return select_track(path, _tracks(path, named), video)
    title = path.name.removesuffix(".gz").rpartition(".")[0] or path.name
    lines = _by_time(line for _, line, _ in named)
    return CaptionTrack(hashlib.sha256(data).hexdigest()[:16], title, lines)


def read_tracks(path: Path, limits: ImportLimits = DEFAULT_LIMITS) -> tuple[CaptionTrack, ...]:
    """Read the videos of a JSONL file (also gzipped) whose lines name them by ``video``.

    Returns:
        A track for each video, in the order of first occurrence.

    Raises:
        NotFound: there is no such file.
        InputError: a line names no video, or the file cannot be read; says which line.
    """
    return _tracks(path, _read_lines(path, limits)[1])


def select_track(path: Path, tracks: Iterable[CaptionTrack], video: str) -> CaptionTrack:
    """Return the track of the video of that name.

    Raises:
        InputError: the file names no such video.
    """
    named = {track.title: track for track in tracks}
    if video not in named:
        examples = ", ".join(islice(named, 3)) + (" ..." if len(named) > 3 else "")
        raise InputError(f"{path} names {len(named)} videos ({examples}), none of them {video!r}")
    return named[video]


_SourceLine = tuple[str, CaptionLine, int]
"""The name of a line's video ("" if it names none), the line, and its line number from 1."""


def _read_lines(path: Path, limits: ImportLimits) -> tuple[bytes, list[_SourceLine]]:
    """Return what a file holds, and its lines in their order.

    Raises:
        NotFound: there is no such file.
        InputError: it cannot be read, or has no line.
    """
    data, text = _read_existing(path, limits)
    if path.name.lower().removesuffix(".gz").endswith(SUBTITLE_SUFFIXES):
        lines = [
            ("", CaptionLine(span=span, text=said, kind="speech", speaker=speaker), n)
            for n, (span, speaker, said) in enumerate(spoken_lines(_parse_cues(path, text)), 1)
        ]
    else:
        lines = list(_parse_jsonl(path, text))
    if not lines:
        raise InputError(f"{path} holds no timed line: nothing to import")
    return data, lines


def read_text(path: Path, limits: ImportLimits = DEFAULT_LIMITS) -> str:
    """Return the text of a file, which may be gzipped.

    Raises:
        NotFound: there is no such file.
        InputError: it cannot be read, or is too large.
    """
    return _read_existing(path, limits)[1]


def _read_existing(path: Path, limits: ImportLimits) -> tuple[bytes, str]:
    if not path.is_file():
        raise NotFound(f"there is no file {path}")
    data = _read_file(path, limits)
    return data, _decode(path, data, limits)


def _by_time(lines: Iterable[CaptionLine]) -> tuple[CaptionLine, ...]:
    return tuple(sorted(lines, key=lambda line: (line.span.start_ms, line.span.end_ms)))


def _tracks(path: Path, named: Iterable[_SourceLine]) -> tuple[CaptionTrack, ...]:
    videos: dict[str, list[CaptionLine]] = {}
    for video, line, number in named:
        if not video:
            raise InputError(
                f"{path}, line {number}: it names no video. Give every line a video, "
                "or import the file as one: homer import VIDEO --captions FILE"
            )
        videos.setdefault(video, []).append(line)
    return tuple(_track(name, _by_time(lines)) for name, lines in videos.items())


def _track(name: str, lines: tuple[CaptionLine, ...]) -> CaptionTrack:
    digest = hashlib.sha256(name.encode())
    for line in lines:
        fields = (line.span.start_ms, line.span.end_ms, line.kind, line.speaker, line.text)
        digest.update(b"\n" + json.dumps(fields).encode())
    return CaptionTrack(digest.hexdigest()[:16], name, lines)


def _read_file(path: Path, limits: ImportLimits) -> bytes:
    try:
        with path.open("rb") as file:
            return _read_limited(path, file, limits)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error


def _read_limited(path: Path, file: IO[bytes], limits: ImportLimits) -> bytes:
    data = file.read(limits.captions_mb * MB + 1)
    if len(data) > limits.captions_mb * MB:
        raise InputError(
            f"{path} is refused: the limit imports.captions_mb is {limits.captions_mb} "
            "(raise it in homer.toml if you trust the file)"
        )
    return data


def _decode(path: Path, data: bytes, limits: ImportLimits) -> str:
    try:
        unpacked = data
        if data[:2] == b"\x1f\x8b":
            unpacked = _read_limited(
                path, cast(IO[bytes], gzip.GzipFile(fileobj=io.BytesIO(data))), limits
            )
        return unpacked.decode(_BOMS.get(unpacked[:2], "utf-8-sig"))
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not text in UTF-8 or UTF-16: {error}") from error


def _parse_jsonl(path: Path, text: str) -> Iterator[_SourceLine]:
    for number, raw in enumerate(text.split("\n"), 1):
        if raw.strip():
            try:
                video, line = parse_json_line(json.loads(raw))
            except (ValueError, RecursionError) as error:
                raise InputError(f"{path}, line {number}: {error}") from error
            if line.text:
                yield video, line, number


def parse_json_line(row: Any) -> tuple[str, CaptionLine]:
    """Return one JSON object as a line, and the name of its video.

    Raises:
        ValueError: it is not what it should be.
    """
    if not isinstance(row, dict):
        raise ValueError("not a JSON object with start, end and text")
    day = _parse_seconds(row.get("day", 1), "day")
    if day < 1 or day != int(day):
        raise ValueError("day is not a whole number from 1")
    start, end = _parse_seconds(row.get("start"), "start"), _parse_seconds(row.get("end"), "end")
    offset = (int(day) - 1) * DAY_S
    speaker = escape_tags(_parse_text(row.get("speaker") or "", "speaker"))
    start_s = offset + start
    end_s = offset + end
    if end_s < start_s:
        raise ValueError(f"it ends ({end_s} s) before it starts ({start_s} s)")
    span, text = (
        TimeSpan.of(round(start_s * 1000), round(end_s * 1000)),
        _parse_text(row.get("text"), "text"),
    )
    value = row.get("kind") or ("speech" if speaker else "caption")
    if value == "speech":
        kind = "speech"
    elif value == "caption":
        kind = "caption"
    else:
        raise ValueError(f"kind is {value!r}: it must be speech or caption")
    # The name of a line's video; other data sets number theirs.
    value = row.get("video")
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    name = _parse_text(str(value) if is_integer else value or "", "video")
    if len(name) > MAX_NAME:
        raise ValueError(f"video is a name of more than {MAX_NAME} characters")
    return name, CaptionLine(span=span, text=text, kind=kind, speaker=speaker or None)


def _parse_seconds(value: Any, name: str) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= MAX_S:
        raise ValueError(f"{name} is not a number of seconds: {value!r}")
    return float(value)


def _parse_text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name} is not a text: {value!r}")
    # Postgres keeps no NUL and UTF-8 no lone surrogate.
    storable = value.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")
    return " ".join(storable.split())


def read_cues(
    path: Path, limits: ImportLimits = DEFAULT_LIMITS
) -> tuple[str, list[tuple[TimeSpan, str]]]:
    """The times and texts of a file of subtitles, in order of time, as ``spoken`` takes them.

    Returns:
        The file's SHA-256 in hex, and its cues.

    Raises:
        InputError: the file cannot be read, or has no cue.
    """
    data = _read_file(path, limits)
    text = _decode(path, data, limits)
    cues = sorted(_parse_cues(path, text), key=lambda c: (c[0].start_ms, c[0].end_ms))
    if not cues:
        raise InputError(f"{path} holds no timed line of subtitles")
    return hashlib.sha256(data).hexdigest(), cues


def _parse_cues(path: Path, text: str) -> Iterator[tuple[TimeSpan, str]]:
    # pysubs2 takes time that grows with the square of the blank lines in a cue.
    text = _WORD_TIMES.sub("", _BLANK_LINES.sub("\n\n", text))
    if hours := _THREE_DIGIT_HOURS.search(text):
        raise InputError(
            f"{path}: {hours[0].strip()[-40:]!r} is beyond the 99 hours of subtitles: "
            "use JSON lines"
        )
    format_ = path.name.lower().removesuffix(".gz")[-3:]
    try:
        subtitles = pysubs2.SSAFile.from_string(text, format_=format_, keep_html_tags=True)
    except (Pysubs2Error, ValueError, IndexError, OverflowError) as error:
        raise InputError(f"{path} cannot be read as subtitles: {error}") from error
    for event in subtitles:
        if not 0 <= event.start <= event.end <= MAX_S * 1000:
            raise InputError(f"{path}: a line ends before it starts, or its time is absurd")
        # A WebVTT cue ends at a blank line; what follows is the next cue's identifier or a note.
        raw = event.text.split(r"\N\N")[0] if format_ == "vtt" else event.text
        yield TimeSpan.of(event.start, event.end), raw


def caption_clips(track: CaptionTrack, settings: WatchSettings) -> Iterator[Percept]:
    """Yield the track in clips of ``settings.clip_ms`` of video time, in order.

    Spans without a line give no clip: clip indices are consecutive, spans are exact. A line
    belongs to the clip it starts in.
    """
    length = settings.clip_ms
    groups = groupby(track.lines, key=lambda line: line.span.start_ms // length)
    for index, (number, lines) in enumerate(groups):
        span = TimeSpan.of(number * length, (number + 1) * length)
        kinds: dict[CaptionKind, list[Utterance]] = {"speech": [], "caption": []}
        for line in lines:
            kinds[line.kind].append(Utterance(**line.model_dump(exclude={"kind"})))
        yield Percept(
            clip=Clip(index=index, span=span),
            utterances=tuple(kinds["speech"]),
            captions=tuple(kinds["caption"]),
        )
