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
from domain.wording import join_sentences
from memory.captions import SUBTITLE_SUFFIXES, read_cues, split_speaker
from perception.source import SUFFIXES, SourceProbe
from perception.subtitle_tracks import text_tracks

_MARK = r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*|sdh|cc|forced|default"
_SIDECAR = re.compile(rf"(?:\.(?:{_MARK})){{0,3}}\.(?:srt|vtt)", re.IGNORECASE)
_LANGUAGE = re.compile(r"^\.([A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*)(?=\.)")
_NO_LANGUAGE = frozenset({"sdh", "cc"})
_LINE_BREAK = re.compile(r"\\[Nn]|\n")

MAX_PAUSE_MS = 1_500
"""A longer pause ends a line."""
ROLLING_GAP_MS = 200
"""A cue that follows another so soon may repeat its lines, as rolling captions do."""

Cues = Sequence[tuple[TimeSpan, str]]


@dataclass(frozen=True)
class SourceTexts:
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

    def add_to(self, percept: Percept) -> Percept:
        """Return the percept with the lines and chapters that begin in its clip."""
        clip = percept.clip
        lines = [
            line
            for track in self.tracks
            for line in join_sentences(_starting_in(clip, track), MAX_PAUSE_MS)
        ]
        # The same words at the same time in two places are one line.
        unique = {(one.span.start_ms, one.text): one for one in reversed(lines)}
        subtitles = sorted(
            unique.values(), key=lambda one: (one.span.start_ms, one.span.end_ms, one.text)
        )
        starting_chapters = tuple(
            _clip_chapter(one, clip) for one in _starting_in(clip, self.chapters)
        )
        return percept.model_copy(
            update={"subtitles": tuple(subtitles), "chapters": starting_chapters}
        )


def _starting_in(clip: Clip, utterances: Sequence[Utterance]) -> Sequence[Utterance]:
    """Return the utterances that begin in a clip."""
    first, last = (bisect_left(utterances, ms, key=_start_ms) for ms in _clip_bounds(clip))
    return utterances[first:last]


def _start_ms(one: Utterance) -> int:
    return one.span.start_ms


def _clip_bounds(clip: Clip) -> tuple[int, int]:
    return clip.span.start_ms, clip.span.end_ms


def _clip_chapter(chapter: Utterance, clip: Clip) -> Utterance:
    """Return a chapter that ends with its clip: no span points beyond what was watched."""
    span = chapter.span
    end = max(span.start_ms, min(span.end_ms, clip.span.end_ms))
    return chapter.model_copy(update={"span": TimeSpan.of(span.start_ms, end)})


def choose_subtitles(
    known: Video | None, asked: Subtitles | None, settings: Subtitles
) -> Subtitles:
    """Whether subtitles are used: as asked, else as the video was begun, else by the settings."""
    if asked is not None or known is None:
        return asked or settings
    return "ignore" if known.subtitles is None else "use"


def reject_changed_subtitles(known: Video | None, found: SourceTexts | None) -> None:
    """Passes where a video is new, or was begun with just these subtitles and chapters.

    Args:
        known: The video as it is in memory, if it is.
        found: What would be used now; None: nothing is to be.

    Raises:
        InputError: it was begun otherwise; says how to watch it anew.
    """
    if known is None or _are_same(known.subtitles, found.names if found else None):
        return
    before = ", ".join(known.subtitles) if known.subtitles else "no subtitles"
    now = ", ".join(found.names) if found and found.names else "none"
    choice = "use" if found else "ignore"
    raise InputError(
        f"{known.title} was watched with {before}, and {now} would be used now: to have that, "
        f"homer delete {known.id} and ingest it again with --subtitles {choice}"
    )


def _are_same(before: Sequence[str] | None, now: Sequence[str] | None) -> bool:
    """To use none where there are none is the same as to ignore them."""
    return list(before or ()) == list(now or ())


def read_source_texts(path: Path, probed: SourceProbe) -> SourceTexts:
    """Return all subtitles and chapters that come with the video at ``path``.

    Raises:
        InputError: a file of subtitles cannot be read; says which and what to do.
        MediaError: the video went away.
    """
    found = [*_read_sidecars(path), *_read_embedded(path, probed)]
    chapter_titles = tuple(Utterance(span=one.span, text=one.text) for one in probed.chapters)
    names = [name for name, _ in found] + (
        [f"{len(chapter_titles)} chapters"] if chapter_titles else []
    )
    unread = tuple(
        f"track {one.number} of {path.name} is no text ({one.codec}): its subtitles are not read"
        for one in probed.subtitles
        if not one.is_text
    )
    return SourceTexts(tuple(names), tuple(cues for _, cues in found), chapter_titles, unread)


def _read_sidecars(path: Path) -> Iterator[tuple[str, tuple[Utterance, ...]]]:
    for file in find_sidecars(path):
        digest, cues = _read_sidecar(file)
        ending = file.name[len(path.stem) :]
        yield f"{ending} {digest[:12]}", cues_to_utterances(cues, _language_of(ending))


def _read_embedded(path: Path, probed: SourceProbe) -> Iterator[tuple[str, tuple[Utterance, ...]]]:
    for track in text_tracks(path, probed):
        cues = [(cue.span, cue.text) for cue in track.cues]
        yield f"track {track.number}", cues_to_utterances(cues, track.language)


def _read_sidecar(file: Path) -> tuple[str, Cues]:
    try:
        return read_cues(file)
    except InputError as error:
        raise InputError(
            f"{error}: repair or move the file, or watch without it: --subtitles ignore"
        ) from error


def find_sidecars(path: Path) -> list[Path]:
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
        and file.name.lower().endswith(SUBTITLE_SUFFIXES)
        and file.is_file()
    )


def _language_of(ending: str) -> str:
    found = _LANGUAGE.match(ending)
    return found[1] if found and found[1].lower() not in _NO_LANGUAGE else ""


def cues_to_utterances(cues: Cues, language: str = "") -> tuple[Utterance, ...]:
    """Cues without mark-up and without what they repeat, in order of time."""
    return tuple(
        Utterance(span=span, text=text, language=language, speaker=speaker)
        for span, speaker, text in _strip_markup(_drop_repeated_lines(cues))
        if text
    )


def _drop_repeated_lines(cues: Cues) -> Iterator[tuple[TimeSpan, str]]:
    """Each line of text once, where captions roll up and show the last line again."""
    previous: frozenset[str] = frozenset()
    end = -ROLLING_GAP_MS - 1
    for span, raw in cues:
        lines = tuple(line.strip() for line in _LINE_BREAK.split(raw) if line.strip())
        is_rolling = span.start_ms - end <= ROLLING_GAP_MS
        new = tuple(line for line in lines if not (is_rolling and line in previous))
        previous, end = frozenset(lines), span.end_ms
        if new:
            yield span, "\n".join(new)


def _strip_markup(
    cues: Iterable[tuple[TimeSpan, str]],
) -> Iterator[tuple[TimeSpan, str | None, str]]:
    for span, text in cues:
        speaker, plain = split_speaker(text)
        yield span, speaker, plain
