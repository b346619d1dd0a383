"""Reads timed captions and transcripts: what they say, by whom, divided into clips' percepts."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import html
import io
import json
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, islice, pairwise
from pathlib import Path
from typing import IO, Any, Literal

import pysubs2
from pysubs2.exceptions import Pysubs2Error

from domain.errors import InputError, NotFound
from domain.media import Clip, Percept, Utterance, Video
from domain.people import escape_tags
from domain.sentences import share_span
from domain.settings import DEFAULT_LIMITS, MB, ImportLimits, WatchSettings
from domain.time import TimeSpan
from domain.words import make_storable

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
    return _read_file(path, limits)


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
    tracks = []
    for name, unordered in videos.items():
        digest, lines = hashlib.sha256(name.encode()), _by_time(unordered)
        for line in lines:
            fields = (line.span.start_ms, line.span.end_ms, line.kind, line.speaker, line.text)
            digest.update(b"\n" + json.dumps(fields).encode())
        tracks.append(CaptionTrack(digest.hexdigest()[:16], name, lines))
    return tuple(tracks)


def _read_file(path: Path, limits: ImportLimits) -> tuple[bytes, str]:
    """Return the bytes and the text of a file."""
    try:
        with path.open("rb") as file:
            data = _read_limited(path, file, limits)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    try:
        unpacked = data
        if data[:2] == b"\x1f\x8b":
            unpacked = _read_limited(path, gzip.GzipFile(fileobj=io.BytesIO(data)), limits)
        return data, unpacked.decode(_BOMS.get(unpacked[:2], "utf-8-sig"))
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not text in UTF-8 or UTF-16: {error}") from error


def _read_limited(path: Path, file: IO[bytes] | gzip.GzipFile, limits: ImportLimits) -> bytes:
    data = file.read(limits.captions_mb * MB + 1)
    if len(data) > limits.captions_mb * MB:
        raise InputError(
            f"{path} is refused: the limit imports.captions_mb is {limits.captions_mb} "
            "(raise it in homer.toml if you trust the file)"
        )
    return data


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
    midnight = (int(day) - 1) * DAY_S
    speaker = escape_tags(_parse_text(row.get("speaker") or "", "speaker"))
    start_s, end_s = midnight + start, midnight + end
    if end_s < start_s:
        raise ValueError(f"it ends ({end_s} s) before it starts ({start_s} s)")
    span = TimeSpan.of(round(start_s * 1000), round(end_s * 1000))
    text = _parse_text(row.get("text"), "text")
    kind = row.get("kind") or ("speech" if speaker else "caption")
    if kind not in ("speech", "caption"):
        raise ValueError(f"kind is {kind!r}: it must be speech or caption")
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
    data, text = _read_file(path, limits)
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


_Turns = tuple[TimeSpan | None, list[tuple[str | None, str]]]
"""When a cue is shown, and what each speaker says in it."""
_Prefix = tuple[str | None, bool, str]
"""Who a line may begin with as its speaker, whether that is sure, and what is said."""

ROLLING_GAP_MS = 200
"""A cue within this time after another may repeat its words, as in roll-up captions."""

_VOICE_TAG = re.compile(r"<v(?:\.[\w.]++)?\s++([^<>]++)>", re.IGNORECASE)
_DRAWING = re.compile(r"\{[^{}]*\\p[1-9][^{}]*\}[^{]*+")
"""What follows in Advanced SubStation where drawing is on: lines and curves, no words."""
_MARKUP = re.compile(r"<[^<>]*+>|\{\\[^{}]*+\}")
_LINE_BREAK = re.compile(r"\\[Nn]|\n")
_LONG_CHARACTER_REFERENCE = re.compile(r"&#\d{20,}+;?")
"""A character reference with too many digits, which Python may refuse to parse."""
_PREFIX = re.compile(
    r"(?:>>+|[-\u2013\u2014])?\s*+([^:\uff1a]{1,60}+)(?:\uff1a|:(?![\d/]))\s*+(?=\S)"
)
_ASIDE = re.compile(
    r"(?:(?<=\S)\s*+|^(?=.*[^\])\uff09]$))(?:\([^()]*+\)|\[[^\[\]]*+\]|\uff08[^\uff08\uff09]*+\uff09)"
)
_PAIRS = (("(", ")"), ("[", "]"), ("\uff08", "\uff09"))
_BRACKETS = " ()[]\uff08\uff09\u3010\u3011"
_NAME_WORD = re.compile(r"[^\W\d_](?:[\w.&\u2019'-]*\w)?\.?")
_PARTICLES = ("al", "bin", "da", "de", "del", "der", "di", "el", "la", "of", "the", "van", "von")
_MOST_WORDS, _MOST_SIGNS, _MOST_REPEATED, _INSTANT_MS = 4, 12, 100, 100
_NO_SPEAKERS = frozenset((Path(__file__).with_name("no_speakers.txt")).read_text("utf-8").split())
"""What stands before a colon as often as a name, and is none."""


def spoken_lines(
    cues: Iterable[tuple[TimeSpan, str]],
) -> Iterator[tuple[TimeSpan, str | None, str]]:
    """Yield when, by whom and what is said in cues, in order of time and without mark-up.

    Of captions that roll up, where a cue shows again what the one before it showed and goes on,
    each phrase comes once. Several speakers in one cue are several lines, which share its time.
    """
    in_order = sorted(cues, key=lambda cue: (cue[0].start_ms, cue[0].end_ms))
    read = [_read(raw) for _, raw in in_order]
    prefixes = [[one for _, _, one in found] for found in read]
    named = [{name for name, _, _ in found if name} for found in prefixes]
    often = Counter(name for names in named for name in names)
    sure = {name for found in prefixes for name, is_sure, _ in found if is_sure}
    # By itself "Chicago: the windy city" may be a heading, and so may any noun in German. In a
    # file that names who speaks, names recur, or are in most cues.
    usual = 2 * sum(map(bool, named)) >= len(in_order)
    speakers = {name for name, count in often.items() if usual or count > 1 or name in sure}
    spans = (span for span, _ in in_order)
    turns = [(span, _turns(found, speakers)) for span, found in zip(spans, read, strict=True)]
    repeated = [_repeated(before, now) for before, now in pairwise([(None, []), *turns])]
    # Somebody may say the same twice: captions roll up if most cues repeat several words and go
    # on, or stand for an instant, as YouTube's between two lines.
    rolling = [
        count > 1 and (count < _word_count(said) or span.length_ms <= _INSTANT_MS)
        for count, (span, said) in zip(repeated, turns, strict=True)
    ]
    rolls = 2 * sum(rolling) > len(turns) > 2
    for (span, said), again in zip(turns, repeated, strict=True):
        if again == _word_count(said) and span.length_ms > _INSTANT_MS:
            again = 0
        left = list[tuple[str | None, str]]()
        for speaker, text in said:
            new = text.split()
            dropped = min(again, len(new)) if rolls else 0
            again -= dropped
            if new[dropped:]:
                left.append((speaker, " ".join(new[dropped:])))
        parts = share_span(span, [len(text) for _, text in left]) if len(left) > 1 else [span]
        for (speaker, text), part in zip(left, parts, strict=False):
            yield part, speaker, text


def _word_count(said: list[tuple[str | None, str]]) -> int:
    return sum(len(text.split()) for _, text in said)


def _repeated(before: _Turns, now: _Turns) -> int:
    """Return how many words of a cue are the last ones of the cue right before it."""
    if before[0] is None or now[0] is None or now[0].start_ms - before[0].end_ms > ROLLING_GAP_MS:
        return 0
    shown, again = (
        [word for _, text in said for word in text.split()] for _, said in (before, now)
    )
    most = min(len(shown), len(again), _MOST_REPEATED)
    return next((n for n in range(most, 0, -1) if shown[-n:] == again[:n]), 0)


def _read(raw: str) -> list[tuple[str | None, str, _Prefix]]:
    """Return the lines of a cue: the voice tag that each stands behind, its words, its prefix."""
    # What is before a voice tag, then each name with what follows.
    first, *voiced = _VOICE_TAG.split(_DRAWING.sub("", raw))
    found: list[tuple[str | None, str, _Prefix]] = []
    for name, marked_up in [("", first), *zip(voiced[::2], voiced[1::2], strict=True)]:
        voice = _one_line(name) or None
        for marked_line in filter(str.strip, _LINE_BREAK.split(marked_up)):
            unmarked = _LONG_CHARACTER_REFERENCE.sub("\ufffd", _MARKUP.sub("", marked_line))
            line = _one_line(html.unescape(unmarked))
            found.append((voice, line, _prefix(line)))
    return found


def _turns(
    lines: Iterable[tuple[str | None, str, _Prefix]], speakers: Collection[str]
) -> list[tuple[str | None, str]]:
    """Join the lines of a cue by who speaks: by voice, by prefix, or ``- Hello`` on its line."""
    turns: list[tuple[str | None, list[str]]] = []
    for voice, line, (name, _, said) in lines:
        if voice or name not in speakers:
            name, said = voice, line.removeprefix("-").strip()
        if not said:
            continue
        if turns and name in (None, turns[-1][0]) and not line.startswith("-"):
            turns[-1][1].append(said)
        else:
            turns.append((name, [said]))
    # Joined once at the end: a cue of many thousand lines took time with the square of them.
    return [(name, " ".join(parts)) for name, parts in turns]


def _one_line(text: str) -> str:
    return " ".join(make_storable(text).split())


def _prefix(line: str) -> _Prefix:
    """Read ``OMAR: Hello``, also with an aside, in brackets, or behind a mark."""
    prefix = _PREFIX.match(line)
    raw = prefix[1].strip("\u266a\u266b ") if prefix else ""
    name = _ASIDE.sub(" ", raw).strip(_BRACKETS)
    if not prefix or any(raw.count(a) != raw.count(b) for a, b in _PAIRS) or not _is_name(name):
        return None, False, line
    said = line[prefix.end() :]
    # A word with digits is a label, as SPEAKER_01.
    plain = [word if re.search(r"\d", word) else word.title() for word in name.split()]
    shown = " ".join(plain) if name.isupper() else name
    # In a file in capitals, these say nothing.
    sure = line.startswith(">>") or (name.isupper() and not said.isupper())
    return shown, sure, said


def _is_name(text: str) -> bool:
    """Check whether what stands before a colon can be the name of a speaker, in any script."""
    words = [word for word in text.split() if not word.strip("#").isdigit() and word != "&"]
    if not 0 < len(words) <= _MOST_WORDS or {word.casefold() for word in words} <= _NO_SPEAKERS:
        return False
    if not any(letter.isupper() or letter.islower() for letter in text):
        # Scripts without capitals: a name is short, of letters and what is written around them.
        signs = [unicodedata.category(sign)[0] for sign in "".join(words)]
        return len(words) <= 2 and len(signs) <= _MOST_SIGNS and set(signs) <= {"L", "M"}
    starts = [word for word in words if word not in _PARTICLES]
    return bool(starts) and all(
        _NAME_WORD.fullmatch(word) and not word[0].islower() for word in starts
    )
