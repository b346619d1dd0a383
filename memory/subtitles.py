"""Subtitles and chapters that come with a video, as a source of their own beside what is heard.

Subtitles lie beside the video (``talk.srt``, ``talk.en.vtt``) or in tracks inside it. A line
belongs to the clip it begins in, and so does a chapter: that is when it is shown.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from domain.errors import InputError
from domain.media import Clip, Percept, Utterance, Video
from domain.settings import Subtitles
from domain.time import TimeSpan
from domain.wording import LINE_WORDS, ends_sentence
from memory.captions import SUBTITLES, read_cues, spoken
from perception.source import SUFFIXES, SourceProbe
from perception.subtitle_tracks import text_tracks

_MARK = r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*|sdh|cc|forced|default"
_SIDECAR = re.compile(rf"(?:\.(?:{_MARK})){{0,3}}\.(?:srt|vtt)", re.IGNORECASE)
_LANGUAGE = re.compile(r"^\.([A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*)(?=\.)")
_NO_LANGUAGE = frozenset({"sdh", "cc"})
_BREAK = re.compile(r"\\[Nn]|\n")

PAUSE_MS = 1_500
"""A longer pause ends a line."""
ROLLING_MS = 200
"""A cue that follows another so soon may repeat its lines, as rolling captions do."""

Cues = Sequence[tuple[TimeSpan, str]]


@dataclass(frozen=True)
class Accompaniment:
    """What comes with a video in words.

    Attributes:
        names: What was found, with a digest where it is a file of its own; for the record.
        tracks: The cues of each track of subtitles, in order of time.
        chapters: Titles in order of time.
        unread: What is there and cannot be read, in words.
    """

    names: tuple[str, ...] = ()
    tracks: tuple[tuple[Utterance, ...], ...] = ()
    chapters: tuple[Utterance, ...] = ()
    unread: tuple[str, ...] = ()

    def added_to(self, percept: Percept) -> Percept:
        """The percept with the lines and chapters that begin in its clip."""
        clip = percept.clip
        lines = [line for track in self.tracks for line in _joined(_within(clip, track))]
        # The same words at the same time in two places are one line.
        once = {(one.span.start_ms, one.text): one for one in reversed(lines)}
        told = sorted(once.values(), key=lambda one: (one.span.start_ms, one.span.end_ms, one.text))
        begun = tuple(_cut(one, clip) for one in _within(clip, self.chapters))
        return percept.model_copy(update={"subtitles": tuple(told), "chapters": begun})


def _within(clip: Clip, told: Sequence[Utterance]) -> Sequence[Utterance]:
    """What begins in a clip, of what is in order of time."""
    first, last = (bisect_left(told, ms, key=_start) for ms in _ends(clip))
    return told[first:last]


def _start(one: Utterance) -> int:
    return one.span.start_ms


def _ends(clip: Clip) -> tuple[int, int]:
    return clip.span.start_ms, clip.span.end_ms


def _cut(chapter: Utterance, clip: Clip) -> Utterance:
    """A chapter lasts beyond its clip, but nothing may point beyond what was watched."""
    span = chapter.span
    end = max(span.start_ms, min(span.end_ms, clip.span.end_ms))
    return chapter.model_copy(update={"span": TimeSpan.of(span.start_ms, end)})


def chosen(known: Video | None, asked: Subtitles | None, settings: Subtitles) -> Subtitles:
    """Whether subtitles are used: as asked, else as the video was begun, else by the settings."""
    if asked is not None or known is None:
        return asked or settings
    return "ignore" if known.subtitles is None else "use"


def refuse_other_subtitles(known: Video | None, found: Accompaniment | None) -> None:
    """Passes where a video is new, or was begun with just these subtitles and chapters.

    Args:
        known: The video as it is in memory, if it is.
        found: What would be used now; None: nothing is to be.

    Raises:
        InputError: it was begun otherwise; says how to watch it anew.
    """
    if known is None or _same(known.subtitles, found.names if found else None):
        return
    had = ", ".join(known.subtitles) if known.subtitles else "no subtitles"
    have = ", ".join(found.names) if found and found.names else "none"
    choice = "use" if found else "ignore"
    raise InputError(
        f"{known.title} was watched with {had}, and {have} would be used now: to have that, "
        f"homer delete {known.id} and ingest it again with --subtitles {choice}"
    )


def _same(before: Sequence[str] | None, now: Sequence[str] | None) -> bool:
    """To use none where there are none is the same as to ignore them."""
    return list(before or ()) == list(now or ())


def accompaniment(path: Path, probed: SourceProbe) -> Accompaniment:
    """All subtitles and chapters that come with the video at ``path``.

    Raises:
        InputError: a file of subtitles cannot be read; says which and what to do.
        MediaError: the video went away.
    """
    found = [*_beside(path), *_inside(path, probed)]
    begun = tuple(Utterance(span=one.span, text=one.text) for one in probed.chapters)
    names = [name for name, _ in found] + ([f"{len(begun)} chapters"] if begun else [])
    unread = tuple(
        f"track {one.number} of {path.name} is no text ({one.codec}): its subtitles are not read"
        for one in probed.subtitles
        if not one.is_text
    )
    return Accompaniment(tuple(names), tuple(cues for _, cues in found), begun, unread)


def _beside(path: Path) -> Iterator[tuple[str, tuple[Utterance, ...]]]:
    for file in sidecars(path):
        digest, cues = _read(file)
        ending = file.name[len(path.stem) :]
        yield f"{ending} {digest[:12]}", cues_of(cues, _language_of(ending))


def _inside(path: Path, probed: SourceProbe) -> Iterator[tuple[str, tuple[Utterance, ...]]]:
    for track in text_tracks(path, probed):
        cues = [(cue.span, cue.text) for cue in track.cues]
        yield f"track {track.number}", cues_of(cues, track.language)


def _read(file: Path) -> tuple[str, Cues]:
    try:
        return read_cues(file)
    except InputError as error:
        raise InputError(
            f"{error}: repair or move the file, or watch without it: --subtitles ignore"
        ) from error


def sidecars(path: Path) -> list[Path]:
    """Files of subtitles beside a video that are called like it, by name.

    Between the name and its ending may stand a language and what kind of subtitles they are:
    ``talk.srt``, ``talk.en.srt``, ``talk.pt-BR.sdh.vtt``. Another video's are left to it.
    """
    others = {
        file.stem
        for file in path.parent.iterdir()
        if file.suffix.lower() in SUFFIXES and file.stem != path.stem
    }
    return sorted(
        file
        for file in path.parent.iterdir()
        if file.name.startswith(path.stem)
        and _SIDECAR.fullmatch(file.name[len(path.stem) :])
        and not any(file.name.startswith(f"{o}.") and len(o) > len(path.stem) for o in others)
        and file.name.lower().endswith(SUBTITLES)
        and file.is_file()
    )


def _language_of(ending: str) -> str:
    found = _LANGUAGE.match(ending)
    return found[1] if found and found[1].lower() not in _NO_LANGUAGE else ""


def cues_of(cues: Cues, language: str = "") -> tuple[Utterance, ...]:
    """Cues without mark-up and without what they repeat, in order of time."""
    return tuple(
        Utterance(span=span, text=text, language=language, speaker=speaker)
        for span, speaker, text in _clean(_rolled(cues))
        if text
    )


def _rolled(cues: Cues) -> Iterator[tuple[TimeSpan, str]]:
    """Each line of text once, where captions roll up and show the last line again."""
    before: frozenset[str] = frozenset()
    end = -ROLLING_MS - 1
    for span, raw in cues:
        lines = tuple(line.strip() for line in _BREAK.split(raw) if line.strip())
        follows = span.start_ms - end <= ROLLING_MS
        new = tuple(line for line in lines if not (follows and line in before))
        before, end = frozenset(lines), span.end_ms
        if new:
            yield span, "\n".join(new)


def _clean(cues: Iterable[tuple[TimeSpan, str]]) -> Iterator[tuple[TimeSpan, str | None, str]]:
    for span, text in cues:
        speaker, plain = spoken(text)
        yield span, speaker, plain


def _joined(said: Sequence[Utterance]) -> list[Utterance]:
    """Cues that one sentence runs over, as one line."""
    joined: list[Utterance] = []
    for one in said:
        if joined and _runs_on(joined[-1], one):
            last = joined.pop()
            text, span = f"{last.text} {one.text}", last.span.union(one.span)
            one = last.model_copy(update={"text": text, "span": span})
        joined.append(one)
    return joined


def _runs_on(last: Utterance, one: Utterance) -> bool:
    words = len(last.text.split()) + len(one.text.split())
    return (
        not ends_sentence(last.text)
        and one.speaker in (None, last.speaker)
        and one.span.start_ms - last.span.start_ms >= 0
        and one.span.start_ms - last.span.end_ms <= PAUSE_MS
        and words <= LINE_WORDS
    )
