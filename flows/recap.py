"""Writes recaps: what happened in a day or an hour of a video, from its event segments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from sqlalchemy.orm import Session

from agent.ask_model import AskModel
from domain.media import Video
from domain.memories import Segment
from domain.recaps import Period, Recap
from domain.time import TimeSpan
from flows.recap_text import RecapMaterial, linked_citations, plain, recap_text
from people.clip_people import ClipPeople
from people.corrected import characters_at
from people.memory_lines import display_segment
from services.app_address import app_address
from store.database import Store
from store.queries.graph import count_segments, segments_in_time
from store.queries.percepts import lock_video
from store.queries.recaps import began_at, last_clip_within, put_recap
from store.queries.videos import find_video, known_video, list_videos
from store.recap_files import ALL, remove_recap_files, write_recap_file

MAX_EVENTS = 24
"""Most events of a recap: one of each 24th of its period, the longest one."""
TRIES = 3
"""How often a recap is written while what it rests on changes meanwhile."""


@dataclass(frozen=True)
class RecapDraft:
    """What a recap of one video rests on, and the last clip of it."""

    video: str
    title: str
    span: TimeSpan
    clip: int
    material: RecapMaterial


@dataclass(frozen=True)
class RecapFile:
    """The recaps of a period that have content, and the file with all of them."""

    recaps: tuple[Recap, ...]
    file: Path | None


ModelFor = Callable[[Video, int], AskModel | None]
"""Returns the language model that writes the recap of a video up to a clip; None: rules do."""


def no_model(_video: Video, _clip: int) -> None:
    """Return no model."""


def write_recap(
    store: Store, period: Period, name: str | None = None, model_for: ModelFor = no_model
) -> RecapFile:
    """Write the recap of a period of a video, or of all videos that have any of it.

    It is on record with each video, in place of an earlier one of the period, and in a file.

    Raises:
        NotFound: there is no such video.
        Ambiguous: several go by that name.
    """
    with store.begin() as session:
        videos = [find_video(session, name)] if name else list_videos(session)
    found = [_store_recap(store, video, period, model_for) for video in videos]
    recaps = tuple(recap for recap in found if recap is not None)
    if not recaps:
        return RecapFile((), None)
    file = recaps[0].video if name else ALL
    text = document(period, recaps, app_address(store.home))
    path = write_recap_file(store.home, period.name, file, text)
    with store.begin() as session:
        gone = [recap.video for recap in recaps if known_video(session, recap.video) is None]
    for video in gone:  # It was deleted while the file was written.
        remove_recap_files(store.home, video)
    return RecapFile(recaps, path if path.exists() else None)


def _store_recap(store: Store, video: Video, period: Period, model_for: ModelFor) -> Recap | None:
    """Write a recap and store it, if what it rests on is still so then.

    Where that keeps changing, it is put together by rules at last.
    """
    for _ in range(TRIES):
        with store.begin() as session:
            draft = read_material(session, video, period)
        if draft is None:
            return None
        text = recap_text(draft.material, model_for(video, draft.clip))
        with store.begin() as session:
            lock_video(session, video.id)
            if read_material(session, video, period) == draft:
                return _put(session, draft, period, text)
    with store.begin() as session:
        lock_video(session, video.id)
        draft = read_material(session, video, period)
        if draft is None:
            return None
        return _put(session, draft, period, recap_text(draft.material, None))


def _put(session: Session, draft: RecapDraft, period: Period, text: str) -> Recap:
    put_recap(session, draft.video, period, draft.span, text, draft.clip)
    return Recap(
        video=draft.video,
        title=draft.title,
        kind=period.kind,
        period=period.name,
        span=draft.span,
        text=text,
    )


def read_material(session: Session, video: Video, period: Period) -> RecapDraft | None:
    """Return what a recap of a video rests on; None if nothing of the period is in memory."""
    known, began = known_video(session, video.id), began_at(session, video.id)
    if known is None or began is None:
        return None
    span = _video_time(period, began)
    clip = None if span is None else last_clip_within(session, video.id, span)
    if span is None or clip is None:
        return None
    characters = tuple(row.character for row in characters_at(session, video.id, clip))
    people = ClipPeople(characters=characters)
    count = count_segments(session, video.id, clip)
    segments = segments_in_time(session, video.id, clip, 0, count)
    within = [one for one in segments if one.span.overlap_ms(span)]
    events = tuple(display_segment(one, people) for one in chosen_events(within, span))
    material = RecapMaterial(period.name, began, events)
    return RecapDraft(video.id, known.title, span, clip, material)


def _video_time(period: Period, began: datetime) -> TimeSpan | None:
    """Return the video time of a period; None if it ended before the video began."""
    moments = (period.start, period.end)
    start, end = ((moment - began) / timedelta(milliseconds=1) for moment in moments)
    return None if end <= 0 else TimeSpan.of(max(0, round(start)), round(end))


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


def document(period: Period, recaps: Sequence[Recap], app: str) -> str:
    """Return recaps as one Markdown document whose citations are links to the app.

    Args:
        period: the day or hour.
        recaps: of its videos.
        app: the app's address.
    """
    parts = [f"# {period.name}"]
    for recap in recaps:
        parts += [f"## {plain(recap.title)}", linked_citations(recap.text, recap.video, app)]
    return "\n\n".join(parts) + "\n"
