"""Reads the subtitles and chapters of a video, a source of text besides speech recognition.

Subtitles are in files beside the video (``talk.srt``, ``talk.en.vtt``) or in tracks inside it. A
line or chapter belongs to the clip it begins in.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from unicodedata import normalize

from domain.errors import InputError
from domain.media import Clip, Percept, Utterance, Video
from domain.sentences import join_sentences
from domain.settings import HOUR_MS, Subtitles
from domain.time import TimeSpan
from domain.words import marked
from memory.captions import SUBTITLE_SUFFIXES, read_cues, spoken_lines
from perception.containers import text_tracks
from perception.source import SUFFIXES, SourceProbe

_MARK = r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*|sdh|cc|forced|default"
_SIDECAR = re.compile(rf"(?:\.(?:{_MARK})){{0,3}}\.(?:srt|vtt)", re.IGNORECASE)
_LANGUAGE = re.compile(r"^\.([A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*)(?=\.)")
_NO_LANGUAGE = frozenset({"sdh", "cc"})

MAX_PAUSE_MS = 1_500
"""The longest pause within a line, in milliseconds."""

Cues = Sequence[tuple[TimeSpan, str]]


@dataclass(frozen=True)
class SourceTexts:
    """The subtitles and chapters of a video.

    Attributes:
        names: The sources, for the record; a file with a digest.
        tracks: The cues of each track of subtitles, in order of time.
        chapters: Titles in order of time.
        remarks: What a person should know: tracks that cannot be read, times that do not fit.
    """

    names: tuple[str, ...] = ()
    tracks: tuple[tuple[Utterance, ...], ...] = ()
    chapters: tuple[Utterance, ...] = ()
    remarks: tuple[str, ...] = ()

    def add_to(self, percept: Percept) -> Percept:
        """Return the percept with the lines and chapters that begin in its clip."""
        clip = percept.clip
        lines = [
            line
            for track in self.tracks
            for line in join_sentences(_starting_in(clip, track), MAX_PAUSE_MS)
        ]
        # Equal lines with the same start in two tracks are one line.
        unique = {(line.span.start_ms, line.text): line for line in reversed(lines)}
        subtitles = sorted(
            unique.values(), key=lambda line: (line.span.start_ms, line.span.end_ms, line.text)
        )
        chapters = []
        for chapter in _starting_in(clip, self.chapters):
            # A chapter ends with its clip: no span points beyond what was watched.
            start, end = chapter.span.start_ms, min(chapter.span.end_ms, clip.span.end_ms)
            span = TimeSpan.of(start, max(start, end))
            chapters.append(chapter.model_copy(update={"span": span}))
        return percept.model_copy(
            update={"subtitles": tuple(subtitles), "chapters": tuple(chapters)}
        )


def _starting_in(clip: Clip, utterances: Sequence[Utterance]) -> Sequence[Utterance]:
    ends = (clip.span.start_ms, clip.span.end_ms)
    first, last = (bisect_left(utterances, ms, key=lambda one: one.span.start_ms) for ms in ends)
    return utterances[first:last]


def texts_to_use(
    path: Path,
    probed: SourceProbe,
    known: Video | None,
    requested: Subtitles | None,
    settings: Subtitles,
) -> SourceTexts | None:
    """Read the subtitles and chapters of a video's file; None where they are not to be used.

    Args:
        path: The file.
        probed: The file as probed.
        known: The video as stored; None if it is new.
        requested: The choice of this run, if it makes one.
        settings: The choice for new videos.

    Raises:
        InputError: The video was begun otherwise, or a file of subtitles cannot be read.
    """
    choice = choose_subtitles(known, requested, settings)
    texts = read_source_texts(path, probed) if choice == "use" else None
    reject_changed_subtitles(known, texts)
    return texts


def choose_subtitles(
    video: Video | None, requested: Subtitles | None, settings: Subtitles
) -> Subtitles:
    """Whether subtitles are used: as asked, else as the video was begun, else by the settings."""
    if requested is not None or video is None:
        return requested or settings
    return "ignore" if video.subtitles is None else "use"


def reject_changed_subtitles(video: Video | None, texts: SourceTexts | None) -> None:
    """Check that a known video was begun with just these subtitles and chapters.

    Args:
        video: The video as stored; None if it is new.
        texts: The subtitles and chapters to use now; None: none.

    Raises:
        InputError: it was begun otherwise; says how to watch it anew.
    """
    if video is None or [*(video.subtitles or ())] == [*(texts.names if texts else ())]:
        return
    stored_names = ", ".join(video.subtitles) if video.subtitles else marked("no subtitles")
    current_names = ", ".join(texts.names) if texts and texts.names else "none"
    choice = "use" if texts else "ignore"
    raise InputError(
        f"{video.title} was watched with {stored_names}, and {current_names} would be used now: "
        f"to have that, homer delete {video.id} and ingest it again with --subtitles {choice}"
    )


def read_source_texts(path: Path, probed: SourceProbe) -> SourceTexts:
    """Return all subtitles and chapters that come with the video at ``path``.

    Raises:
        InputError: a file of subtitles cannot be read; says which and what to do.
        MediaError: the video went away.
    """
    remarks = list[str]()
    tracks = [
        *_read_sidecars(path, probed.info.duration_ms, remarks),
        *(
            (
                f"track {track.number}",
                cues_to_utterances([(cue.span, cue.text) for cue in track.cues], track.language),
            )
            for track in text_tracks(path, probed)
        ),
    ]
    chapter_titles = tuple(
        Utterance(span=chapter.span, text=chapter.text) for chapter in probed.chapters
    )
    names = [name for name, _ in tracks] + (
        [f"{len(chapter_titles)} chapters"] if chapter_titles else []
    )
    remarks += (
        marked(
            f"track {track.number} of {path.name} is no text ({track.codec}): "
            "its subtitles are not read"
        )
        for track in probed.subtitles
        if not track.is_text
    )
    lines = tuple(cues for _, cues in tracks)
    return SourceTexts(tuple(names), lines, chapter_titles, tuple(remarks))


def _read_sidecars(
    path: Path, duration_ms: int, remarks: list[str]
) -> Iterator[tuple[str, tuple[Utterance, ...]]]:
    for file in find_sidecars(path):
        try:
            digest, cues = read_cues(file)
        except InputError as error:
            raise InputError(
                f"{error}: repair or move the file, or watch without it: --subtitles ignore"
            ) from error
        starts = [span.start_ms for span, _ in cues]

        def fitting(hours: int, starts: Sequence[int] = starts) -> int:
            return sum(0 <= start - hours * HOUR_MS < duration_ms for start in starts)

        # Broadcasters count from one hour or from ten, and the clapper is before that.
        shifts = range(min(starts, default=0) // HOUR_MS + 2)
        hours = max(shifts, key=lambda one: (fitting(one), -one))
        if fitting(hours) > 2 * fitting(0):
            by = hours * HOUR_MS
            cues = [
                (TimeSpan.of(span.start_ms - by, span.end_ms - by), text)
                for span, text in cues
                if span.start_ms >= by
            ]
            remarks.append(
                marked(f"the times of {file.name} begin at {hours}:00:00: that is taken for 0:00")
            )
        elif not fitting(0):
            remarks.append(marked(f"no line of {file.name} lies within the video: it is not used"))
        ending = normalize("NFC", file.name)[len(normalize("NFC", path.stem)) :]
        match = _LANGUAGE.match(ending)
        yield (
            f"{ending} {digest[:12]}",
            cues_to_utterances(
                cues, match[1] if match and match[1].lower() not in _NO_LANGUAGE else ""
            ),
        )


def find_sidecars(path: Path) -> list[Path]:
    """Files of subtitles beside a video that are called like it, by name.

    A language and a kind may precede the suffix: ``talk.srt``, ``talk.en.srt``,
    ``talk.pt-BR.sdh.vtt``. Files that belong to another video of the folder are left out. Some
    systems write a letter with an accent as one sign, others as two: both are the same name.
    """
    stem = normalize("NFC", path.stem)
    names = {file: normalize("NFC", file.name) for file in path.parent.iterdir()}
    others = {
        normalize("NFC", file.stem)
        for file in names
        if file.suffix.lower() in SUFFIXES and normalize("NFC", file.stem) != stem
    }
    return sorted(
        file
        for file, name in names.items()
        if name.startswith(stem)
        and _SIDECAR.fullmatch(name[len(stem) :])
        and not any(name.startswith(f"{other}.") and len(other) > len(stem) for other in others)
        and name.lower().endswith(SUBTITLE_SUFFIXES)
        and file.is_file()
    )


def cues_to_utterances(cues: Cues, language: str = "") -> tuple[Utterance, ...]:
    """Return what cues say, without mark-up and without what they repeat, in order of time."""
    return tuple(
        Utterance(span=span, text=text, language=language, speaker=speaker)
        for span, speaker, text in spoken_lines(cues)
    )
