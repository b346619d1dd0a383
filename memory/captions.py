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
from itertools import groupby
from pathlib import Path
from typing import IO, Any, Literal, cast

from domain.errors import InputError, NotFound
from domain.limits import LIMITS, MB, ImportLimits
from domain.media import Clip, Percept, Utterance, Video
from domain.people import untagged
from domain.settings import WatchSettings
from domain.time import TimeSpan

DAY_S = 86_400
LONGEST_S = 366 * DAY_S
"""Times beyond a year are taken for a mistake."""

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
    """All lines of a file in order of time. ``id``: the first 16 hex digits of its SHA-256."""

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


def read_captions(path: Path, limits: ImportLimits = LIMITS) -> CaptionTrack:
    """Read timed lines from a JSONL (also gzipped), SubRip or WebVTT file.

    A JSONL line has ``start`` and ``end`` in seconds and ``text``; optional are ``day`` (from 1,
    the seconds then count from its midnight), ``kind`` (``speech`` or ``caption``; without it
    lines with a speaker are speech) and ``speaker``. Other fields are ignored.

    Raises:
        NotFound: there is no such file.
        InputError: the file is empty, too large, or cannot be read as what it is called; says
            which line.
    """
    if not path.is_file():
        raise NotFound(f"there is no file {path}")
    data = _read(path, limits)
    name = path.name.lower().removesuffix(".gz")
    text = _decoded(path, data, limits)
    subtitles = name.endswith(SUBTITLES)
    lines = list(_subtitles(path, text) if subtitles else _jsonl(path, text))
    if not lines:
        raise InputError(f"{path} holds no timed line: nothing to import")
    lines.sort(key=lambda line: (line.span.start_ms, line.span.end_ms))
    title = path.name.removesuffix(".gz").rpartition(".")[0] or path.name
    return CaptionTrack(hashlib.sha256(data).hexdigest()[:16], title, tuple(lines))


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


def _jsonl(path: Path, text: str) -> Iterator[CaptionLine]:
    for number, raw in enumerate(text.split("\n"), 1):
        if raw.strip():
            try:
                found = _json_line(json.loads(raw))
            except (ValueError, RecursionError) as error:
                raise InputError(f"{path}, line {number}: {error}") from error
            if found.text:
                yield found


def _json_line(row: Any) -> CaptionLine:
    """One JSONL object as a line.

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
    speaker = untagged(_text(row.get("speaker") or "", "speaker"))
    span, text = _span(offset + start, offset + end), _text(row.get("text"), "text")
    kind = _kind(row.get("kind") or ("speech" if speaker else "caption"))
    return CaptionLine(span, text, kind, speaker or None)


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


def _subtitles(path: Path, text: str) -> Iterator[CaptionLine]:
    for span, raw in _cues(path, text):
        speaker, plain = spoken(raw)
        if plain:
            yield CaptionLine(span, plain, "speech", speaker)


def read_cues(path: Path, limits: ImportLimits = LIMITS) -> tuple[str, list[tuple[TimeSpan, str]]]:
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
    import pysubs2
    from pysubs2.exceptions import Pysubs2Error

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
