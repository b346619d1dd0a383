"""Reads timed captions and transcripts, and cuts them into clips as if they had been perceived."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import html
import io
import json
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, cast

import pysubs2
from pysubs2.exceptions import Pysubs2Error

from domain.errors import InputError, NotFound
from domain.limits import DEFAULT_LIMITS, MB, ImportLimits
from domain.media import Clip, Percept, Utterance, Video
from domain.people import escape_tags
from domain.settings import WatchSettings
from domain.time import TimeSpan

DAY_S = 86_400
LONGEST_S = 366 * DAY_S
"""Times beyond a year are taken for a mistake."""

LONGEST_NAME = 500
"""Characters of a video's name in a file that names its videos."""

SUBTITLES = (".srt", ".vtt")
"""Endings of the files that are read as subtitles."""

Kind = Literal["speech", "caption"]

_BOMS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}

_VOICE = re.compile(r"<v(?:\.[\w.]++)?\s++([^<>]++)>", re.IGNORECASE)
_MARKUP = re.compile(r"<[^<>]*+>|\{\\[^{}]*+\}")
_LONG_HOURS = re.compile(
    r"(?<!\d)\d{3,}+:\d\d:\d\d[.,]\d++(?=\s*+-->)|(?<=-->)\s*+\d{3,}+:\d\d:\d\d"
)
"""Hours that readers of subtitles cut to their last two digits."""
_BLANK_LINES = re.compile(r"\n{3,}")
_LONG_NUMBER = re.compile(r"&#\d{20,}+;?")
"""A character reference beyond all characters, which Python may refuse to read as a number."""
_PREFIX = re.compile(r"^(?:-\s*)?([A-Z][A-Z .'-]{1,30}|[A-Z][a-z]+(?: [A-Z][a-z]+)?):\s+(?=\S)")


@dataclass(frozen=True)
class CaptionLine:
    """One timed line: said (``speech``) by ``speaker``, or a description (``caption``)."""

    span: TimeSpan
    text: str
    kind: Kind
    speaker: str | None = None


@dataclass(frozen=True)
class CaptionTrack:
    """All lines about a video in order of time.

    ``id``: the first 16 hex digits of the SHA-256 of the file; of the lines with the video's name,
    where they name it.
    """

    id: str
    title: str
    lines: tuple[CaptionLine, ...]

    def video(self, title: str | None = None, profile: str = "local") -> Video:
        """The track as a video without pictures and sound."""
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

    A JSONL line has ``start`` and ``end`` in seconds and ``text``; optional are ``day`` (from 1,
    the seconds then count from its midnight), ``kind`` (``speech`` or ``caption``; without it
    lines with a speaker are speech), ``speaker`` and ``video``. Other fields are ignored.

    Args:
        path: the file.
        video: which one is meant, where lines name several videos.
        limits: what may be read of it.

    Raises:
        NotFound: there is no such file.
        InputError: the file is empty, too large, or cannot be read as what it is called; says
            which line. It names several videos and not ``video``.
    """
    data, named = _named_lines(path, limits)
    if len({one.video for one in named if one.video}) > 1:
        return one_track(path, _tracks(path, named), video)
    title = path.name.removesuffix(".gz").rpartition(".")[0] or path.name
    lines = _in_time(one.line for one in named)
    return CaptionTrack(hashlib.sha256(data).hexdigest()[:16], title, lines)


def read_tracks(path: Path, limits: ImportLimits = DEFAULT_LIMITS) -> tuple[CaptionTrack, ...]:
    """Read the videos of a JSONL file (also gzipped) whose lines name them by ``video``.

    Returns:
        A track for each video, in the order in which they first come.

    Raises:
        NotFound: there is no such file.
        InputError: a line names no video, or the file cannot be read; says which line.
    """
    return _tracks(path, _named_lines(path, limits)[1])


def one_track(path: Path, tracks: Iterable[CaptionTrack], video: str) -> CaptionTrack:
    """The track of the video of that name.

    Raises:
        InputError: the file names no such video.
    """
    named = {track.title: track for track in tracks}
    if video not in named:
        some = ", ".join(islice(named, 3)) + (" ..." if len(named) > 3 else "")
        raise InputError(f"{path} names {len(named)} videos ({some}), none of them {video!r}")
    return named[video]


class _Named(NamedTuple):
    """A line, the name of its video ("" where it has none), and its place in the file from 1."""

    video: str
    line: CaptionLine
    number: int


def _named_lines(path: Path, limits: ImportLimits) -> tuple[bytes, list[_Named]]:
    """What a file holds, and its lines in their order.

    Raises:
        NotFound: there is no such file.
        InputError: it cannot be read, or has no line.
    """
    if not path.is_file():
        raise NotFound(f"there is no file {path}")
    data = _read(path, limits)
    text = _decoded(path, data, limits)
    subtitles = path.name.lower().removesuffix(".gz").endswith(SUBTITLES)
    lines = list(_unnamed(path, text) if subtitles else _jsonl(path, text))
    if not lines:
        raise InputError(f"{path} holds no timed line: nothing to import")
    return data, lines


def _in_time(lines: Iterable[CaptionLine]) -> tuple[CaptionLine, ...]:
    return tuple(sorted(lines, key=lambda line: (line.span.start_ms, line.span.end_ms)))


def _tracks(path: Path, named: Iterable[_Named]) -> tuple[CaptionTrack, ...]:
    videos: dict[str, list[CaptionLine]] = {}
    for one in named:
        if not one.video:
            raise InputError(
                f"{path}, line {one.number}: it names no video. Give every line a video, or import "
                "the file as one: homer import VIDEO --captions FILE"
            )
        videos.setdefault(one.video, []).append(one.line)
    return tuple(_track(name, _in_time(lines)) for name, lines in videos.items())


def _track(name: str, lines: tuple[CaptionLine, ...]) -> CaptionTrack:
    made = hashlib.sha256(name.encode())
    for line in lines:
        told = (line.span.start_ms, line.span.end_ms, line.kind, line.speaker, line.text)
        made.update(b"\n" + json.dumps(told).encode())
    return CaptionTrack(made.hexdigest()[:16], name, lines)


def _read(path: Path, limits: ImportLimits) -> bytes:
    try:
        with path.open("rb") as file:
            return _within(path, file, limits)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error


def _within(path: Path, file: IO[bytes], limits: ImportLimits) -> bytes:
    data = file.read(limits.captions_mb * MB + 1)
    if len(data) > limits.captions_mb * MB:
        raise InputError(
            f"{path} is refused: the limit imports.captions_mb is {limits.captions_mb} "
            "(raise it in homer.toml if you trust the file)"
        )
    return data


def _decoded(path: Path, data: bytes, limits: ImportLimits) -> str:
    try:
        plain = data
        if data[:2] == b"\x1f\x8b":
            plain = _within(path, cast(IO[bytes], gzip.GzipFile(fileobj=io.BytesIO(data))), limits)
        return plain.decode(_BOMS.get(plain[:2], "utf-8-sig"))
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not text in UTF-8 or UTF-16: {error}") from error


def _jsonl(path: Path, text: str) -> Iterator[_Named]:
    for number, raw in enumerate(text.split("\n"), 1):
        if raw.strip():
            try:
                video, found = _json_line(json.loads(raw))
            except (ValueError, RecursionError) as error:
                raise InputError(f"{path}, line {number}: {error}") from error
            if found.text:
                yield _Named(video, found, number)


def _json_line(row: Any) -> tuple[str, CaptionLine]:
    """One JSONL object as a line, and the name of its video.

    Raises:
        ValueError: it is not what it should be.
    """
    if not isinstance(row, dict):
        raise ValueError("not a JSON object with start, end and text")
    day = _number(row.get("day", 1), "day")
    if day < 1 or day != int(day):
        raise ValueError("day is not a whole number from 1")
    start, end = _number(row.get("start"), "start"), _number(row.get("end"), "end")
    offset = (int(day) - 1) * DAY_S
    speaker = escape_tags(_text(row.get("speaker") or "", "speaker"))
    span, text = _span(offset + start, offset + end), _text(row.get("text"), "text")
    kind = _kind(row.get("kind") or ("speech" if speaker else "caption"))
    return _video(row.get("video")), CaptionLine(span, text, kind, speaker or None)


def _video(value: Any) -> str:
    """The name of a line's video; other data sets number theirs."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    name = _text(str(value) if whole else value or "", "video")
    if len(name) > LONGEST_NAME:
        raise ValueError(f"video is a name of more than {LONGEST_NAME} characters")
    return name


def _kind(value: Any) -> Kind:
    if value == "speech":
        return "speech"
    if value == "caption":
        return "caption"
    raise ValueError(f"kind is {value!r}: it must be speech or caption")


def _number(value: Any, name: str) -> float:
    good = isinstance(value, int | float) and not isinstance(value, bool)
    if not good or not 0 <= value <= LONGEST_S:
        raise ValueError(f"{name} is not a number of seconds: {value!r}")
    return float(value)


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name} is not a text: {value!r}")
    # Postgres keeps no NUL and UTF-8 no lone surrogate.
    plain = value.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")
    return " ".join(plain.split())


def _span(start_s: float, end_s: float) -> TimeSpan:
    if end_s < start_s:
        raise ValueError(f"it ends ({end_s} s) before it starts ({start_s} s)")
    return TimeSpan.of(round(start_s * 1000), round(end_s * 1000))


def _unnamed(path: Path, text: str) -> Iterator[_Named]:
    return (_Named("", line, n) for n, line in enumerate(_subtitles(path, text), 1))


def _subtitles(path: Path, text: str) -> Iterator[CaptionLine]:
    for span, raw in _cues(path, text):
        speaker, plain = spoken(raw)
        if plain:
            yield CaptionLine(span, plain, "speech", speaker)


def read_cues(
    path: Path, limits: ImportLimits = DEFAULT_LIMITS
) -> tuple[str, list[tuple[TimeSpan, str]]]:
    """The times and texts of a file of subtitles, in order of time, as ``spoken`` takes them.

    Returns:
        The file's SHA-256 in hex, and its cues.

    Raises:
        InputError: the file cannot be read, or has no cue.
    """
    data = _read(path, limits)
    text = _decoded(path, data, limits)
    cues = sorted(_cues(path, text), key=lambda c: (c[0].start_ms, c[0].end_ms))
    if not cues:
        raise InputError(f"{path} holds no timed line of subtitles")
    return hashlib.sha256(data).hexdigest(), cues


def _cues(path: Path, text: str) -> Iterator[tuple[TimeSpan, str]]:
    # pysubs2 takes time that grows with the square of the blank lines in a cue.
    text = _BLANK_LINES.sub("\n\n", text)
    if long := _LONG_HOURS.search(text):
        raise InputError(
            f"{path}: {long[0].strip()[-40:]!r} is beyond the 99 hours of subtitles: use JSON lines"
        )
    format_ = path.name.lower().removesuffix(".gz")[-3:]
    try:
        found = pysubs2.SSAFile.from_string(text, format_=format_, keep_html_tags=True)
    except (Pysubs2Error, ValueError, IndexError, OverflowError) as error:
        raise InputError(f"{path} cannot be read as subtitles: {error}") from error
    for event in found:
        if not 0 <= event.start <= event.end <= LONGEST_S * 1000:
            raise InputError(f"{path}: a line ends before it starts, or its time is absurd")
        # A cue of WebVTT ends at a blank line; what follows is the next one's name, or a note.
        raw = event.text.split(r"\N\N")[0] if format_ == "vtt" else event.text
        yield TimeSpan.of(event.start, event.end), raw


def spoken(raw: str) -> tuple[str | None, str]:
    """Speaker and words of a subtitle: ``<v Omar>Hello`` or ``OMAR: Hello``."""
    voice = _VOICE.search(raw)
    bare = _MARKUP.sub("", raw.replace(r"\N", " ").replace(r"\n", " "))
    plain = _text(html.unescape(_LONG_NUMBER.sub("\ufffd", bare)), "text")
    prefix = _PREFIX.match(plain)
    if voice:
        return _text(voice[1], "speaker") or None, plain
    if prefix:
        name = prefix[1].title() if prefix[1].isupper() else prefix[1]
        return name, plain[prefix.end() :]
    return None, plain.removeprefix("-").strip()


def caption_clips(track: CaptionTrack, settings: WatchSettings) -> Iterator[Percept]:
    """The track in clips of ``settings.clip_ms`` of video time, in order.

    Stretches without a line make no clip, so a week is as long as what happened in it: clip
    numbers count the clips, and spans are exact. A line belongs to the clip it starts in.
    """
    length = settings.clip_ms
    stretches = groupby(track.lines, key=lambda line: line.span.start_ms // length)
    for index, (place, lines) in enumerate(stretches):
        span = TimeSpan.of(place * length, (place + 1) * length)
        yield _percept(Clip(index=index, span=span), list(lines))


def _percept(clip: Clip, lines: Iterable[CaptionLine]) -> Percept:
    kinds: dict[Kind, list[Utterance]] = {"speech": [], "caption": []}
    for line in lines:
        one = Utterance(span=line.span, text=line.text, speaker=line.speaker)
        kinds[line.kind].append(one)
    return Percept(clip=clip, utterances=tuple(kinds["speech"]), captions=tuple(kinds["caption"]))
