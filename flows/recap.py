"""Writes recaps: what happened in a day or an hour of a video, from its event segments.

No model is asked: a profile whose writer is a language model has its summaries in the segments.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from sqlalchemy.orm import Session

from domain.memories import Segment
from domain.recaps import Period
from domain.time import TimeSpan, format_clock
from people.clip_people import ClipPeople
from people.corrected import characters_at
from store.database import Store
from store.queries.graph import count_segments, segments_in_time
from store.queries.percepts import lock_video
from store.queries.recaps import began_at, last_clip_within, put_recap
from store.queries.videos import find_video, known_video, list_videos
from store.recap_files import ALL, remove_recap_files, write_recap_file
from views.library import shown_segment
from views.words import shortened

MAX_EVENTS = 24
"""Most events of a recap: one of each 24th of its period, the longest one."""
MAX_SUMMARY = 400


@dataclass(frozen=True)
class VideoRecap:
    """A recap of one video. ``text`` is Markdown, without a heading."""

    video: str
    title: str
    period: Period
    span: TimeSpan
    text: str
    clip: int


@dataclass(frozen=True)
class WrittenRecap:
    """The recaps of a period that have content, and the file with all of them."""

    recaps: tuple[VideoRecap, ...]
    file: Path | None


def write_recap(store: Store, period: Period, name: str | None = None) -> WrittenRecap:
    """Write the recap of a period of a video, or of all videos that have any of it.

    It is on record with each video, in place of an earlier one of the period, and in a file.

    Raises:
        NotFound: there is no such video.
        Ambiguous: several go by that name.
    """
    with store.begin() as session:
        videos = [find_video(session, name)] if name else list_videos(session)
    found = [_store_recap(store, video.id, period) for video in videos]
    recaps = tuple(recap for recap in found if recap is not None)
    if not recaps:
        return WrittenRecap((), None)
    file = recaps[0].video if name else ALL
    path = write_recap_file(store.home, period.name, file, document(period, recaps))
    with store.begin() as session:
        gone = [recap.video for recap in recaps if known_video(session, recap.video) is None]
    for video in gone:  # It was deleted while the file was written.
        remove_recap_files(store.home, video)
    return WrittenRecap(recaps, path if path.exists() else None)


def _store_recap(store: Store, video: str, period: Period) -> VideoRecap | None:
    with store.begin() as session:
        lock_video(session, video)
        recap = make_recap(session, video, period)
        if recap is not None:
            put_recap(session, video, period, recap.span, recap.text, recap.clip)
        return recap


def make_recap(session: Session, video: str, period: Period) -> VideoRecap | None:
    """Return the recap of a period of a video; None if nothing of it is in memory."""
    known, began = known_video(session, video), began_at(session, video)
    if known is None or began is None:
        return None
    span = _video_time(period, began)
    clip = None if span is None else last_clip_within(session, video, span)
    if span is None or clip is None:
        return None
    people = ClipPeople(
        characters=tuple(row.character for row in characters_at(session, video, clip))
    )
    segments = segments_in_time(session, video, clip, 0, count_segments(session, video, clip))
    within = [one for one in segments if one.span.overlap_ms(span)]
    lines = [
        _line(shown_segment(segment, people), began) for segment in chosen_events(within, span)
    ]
    text = "\n".join(lines) or "No event is on record."
    return VideoRecap(video, known.title, period, span, text, clip)


def _video_time(period: Period, began: datetime) -> TimeSpan | None:
    """Return the video time of a period; None if it ended before the video began."""
    start, end = ((moment - began) / timedelta(milliseconds=1) for moment in _bounds(period))
    return None if end <= 0 else TimeSpan.of(max(0, round(start)), round(end))


def _bounds(period: Period) -> tuple[datetime, datetime]:
    return period.start, period.end


def chosen_events(segments: Iterable[Segment], span: TimeSpan) -> list[Segment]:
    """Return at most ``MAX_EVENTS`` segments by time: all, or the longest of each part."""
    found = sorted(segments, key=lambda one: (one.span.start_ms, one.id))
    if len(found) <= MAX_EVENTS:
        return found
    longest: dict[int, Segment] = {}
    for segment in found:
        since_ms = max(0, segment.span.start_ms - span.start_ms)
        part = min(MAX_EVENTS - 1, since_ms * MAX_EVENTS // max(1, span.length_ms))
        best = longest.get(part)
        if best is None or segment.span.length_ms > best.span.length_ms:
            longest[part] = segment
    return [longest[part] for part in sorted(longest)]


def _line(segment: Segment, began: datetime) -> str:
    at = (began + timedelta(milliseconds=segment.span.start_ms)).astimezone()
    summary = shortened(segment.summary, MAX_SUMMARY)
    cited = f"{segment.span}, s{segment.id}"
    return f"- {at:%H:%M} {_plain(segment.label)}. {_plain(summary)} [{cited}]"


def _plain(text: str) -> str:
    """Return a text in which nothing is Markdown or HTML."""
    line = shortened(text, MAX_SUMMARY)
    return "".join(f"\\{char}" if char in "\\`*_{}[]<>#!|$~" else char for char in line)


def document(period: Period, recaps: Sequence[VideoRecap]) -> str:
    """Return recaps as one Markdown document."""
    parts = [f"# {period.name}"]
    for recap in recaps:
        until = format_clock(recap.span.start_ms)
        parts += [f"## {_plain(recap.title)}", f"From {until} of `{recap.video}`.", recap.text]
    return "\n\n".join(parts) + "\n"
