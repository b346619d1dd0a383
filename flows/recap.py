"""Writes recaps: what happened in a day or an hour of a video, from its event segments."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from pydantic import Field
from sqlalchemy.orm import Session

from agent.builder import AskModel
from agent.reasoners.port import Unreadable
from domain.built import Period, Recap, linked_citations
from domain.errors import ModelError
from domain.media import Video
from domain.memories import Segment
from domain.people import tags_in_words
from domain.time import TimeSpan
from domain.words import counted, shortened, without_markup
from flows.builder_model import BuilderModel, builder_model
from flows.workspace import Workspace
from models.messages import assistant, join_lines, prompts_beside, sanitise, system, user
from models.structured import StrictReply
from people.characters import people_at
from people.names import display_segment
from retrieval.terms import terms
from services.supervisor import app_address
from store.database import Store
from store.home import ALL, remove_recap_files, write_recap_file
from store.queries.outline import (
    BUILDER,
    began_at,
    count_segments,
    last_clip_within,
    put_recap,
    segments_in_time,
)
from store.queries.percepts import lock_video
from store.queries.videos import find_video, known_video, list_videos

prompt = prompts_beside(__file__)

# The text of a recap: a language model's with checked citations, else put together by rules.
#
# Both are Markdown of one line for each thing that happened, with the time of day before it and the
# events that it rests on behind it: ``[00:30-01:00, s12]``. The last line says who wrote it.

MAX_SUMMARY = 400
MAX_LINE = 600
"""Most characters of a line that a language model writes."""
MAX_LINES = 12
"""Most lines that a language model writes."""
NOTHING = "No event is on record."
_ENTITY = re.compile(r"&(?=\w+;)")
"""Begins a character by its name in HTML, such as ``&colon;``."""


@dataclass(frozen=True)
class RecapMaterial:
    """What a recap of one video rests on: events by time, with names of people as they are known.

    ``period`` is the name of the day or hour, ``span`` that of the video in it and ``clip`` the
    last one of these; ``began`` is the time of day of the video's time 0.
    """

    video: str
    title: str
    span: TimeSpan
    clip: int
    period: str
    began: datetime
    events: tuple[Segment, ...]


class RecapLine(StrictReply):
    """A line of a recap."""

    text: str
    events: list[int] = Field(description="the numbers of the events that it rests on")


class WrittenRecap(StrictReply):
    """A recap, in order of time."""

    lines: list[RecapLine]

    def complaints(self, events: Sequence[Segment]) -> list[str]:
        """Return what the model is asked to put right, given the events that it was shown."""
        wrong = [] if self.lines else ["there is no line"]
        if len(self.lines) > MAX_LINES:
            wrong.append(f"there are more than {MAX_LINES} lines")
        for number, line in enumerate(self.lines, 1):
            unknown = [one for one in line.events if not 1 <= one <= len(events)]
            cited = [] if unknown else _cited(line, events)
            shown = " ".join(f"{one.label} {one.summary}" for one in cited)
            if not line.text.strip():
                why = "is empty"
            elif len(line.text) > MAX_LINE:
                why = f"is longer than {MAX_LINE} characters"
            elif unknown:
                why = f"names event {unknown[0]}, which there is not"
            elif not line.events:
                why = "names no event"
            elif not set(terms(line.text)) & set(terms(shown)):
                why = "says nothing that is in the events that it names"
            else:
                continue
            wrong.append(f"line {number} {why}")
        return wrong


def _cited(line: RecapLine, events: Sequence[Segment]) -> list[Segment]:
    return [events[number - 1] for number in sorted(set(line.events))]


def recap_text(material: RecapMaterial, model: AskModel | None) -> str:
    """Return the text of a recap: the model's if its citations hold, else one by rules."""
    if not material.events:
        return NOTHING
    count = counted(len(material.events), "event")
    if model is None:
        return f"{_by_rules(material)}\n\nPut together from the summaries of {count}."
    try:
        # Ask for the recap, once more with the complaints if it cannot be used.
        events = material.events
        shown = join_lines(
            f"{number}. {_time_of_day(one, material.began)} {sanitise(one.label)}. "
            f"{sanitise(one.summary)}"
            for number, one in enumerate(events, 1)
        )
        rules = prompt("recap_system", lines=MAX_LINES)
        messages = [system(rules), user(prompt("recap", period=material.period, events=shown))]
        try:
            written = model.ask("write", messages, WrittenRecap)
            wrong = written.complaints(events)
            messages.append(assistant(written.model_dump_json()))
        except Unreadable as error:
            wrong = [str(error)]
        if wrong:
            complaints = join_lines(f"- {sanitise(one)}" for one in wrong)
            messages.append(user(prompt("recap_repair", complaints=complaints)))
            written = model.ask("write-repair", messages, WrittenRecap)
            if wrong := written.complaints(events):
                raise Unreadable(wrong[0])
    except (Unreadable, ModelError):
        why = "what the language model wrote could not be used"
        return f"{_by_rules(material)}\n\nPut together from the summaries of {count}: {why}."
    lines = []
    for line in sorted(written.lines, key=lambda line: min(line.events)):
        cited = _cited(line, material.events)
        refs, text = " ".join(map(_citation, cited)), plain(line.text, MAX_LINE)
        lines.append(f"- {_time_of_day(cited[0], material.began)} {text} {refs}")
    return "\n".join([*lines, "", f"Written by the language model from {count}."])


def _by_rules(material: RecapMaterial) -> str:
    return "\n".join(
        f"- {_time_of_day(one, material.began)} {plain(one.label)}. {plain(one.summary)} "
        f"{_citation(one)}"
        for one in material.events
    )


def _citation(segment: Segment) -> str:
    return f"[{segment.span}, s{segment.id}]"


def _time_of_day(segment: Segment, began: datetime) -> str:
    at = (began + timedelta(milliseconds=segment.span.start_ms)).astimezone()
    return f"{at:%H:%M}"


def plain(text: str, width: int = MAX_SUMMARY) -> str:
    """Return the first ``width`` characters of a text, with no tag and nothing that is markup."""
    line = without_markup(shortened(tags_in_words(text), width))
    escaped = "".join(f"\\{char}" if char in "\\`*_{}[]<>#!|$~" else char for char in line)
    return _ENTITY.sub(r"\&", escaped)


MAX_EVENTS = 24
"""Most events of a recap: one of each 24th of its period, the longest one."""
TRIES = 3
"""How often a recap is written while what it rests on changes meanwhile."""


@dataclass(frozen=True)
class RecapFile:
    """The recaps of a period that have content, and the file with all of them."""

    recaps: tuple[Recap, ...]
    file: Path | None


ModelFor = Callable[[Video, int], AskModel | None]
"""Returns the language model that writes the recap of a video up to a clip; None: rules do."""


def write_recap(
    store: Store, period: Period, name: str | None = None, model_for: ModelFor = lambda *_: None
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
        text = recap_text(draft, model_for(video, draft.clip))
        with store.begin() as session:
            lock_video(session, video.id)
            if read_material(session, video, period) == draft:
                return _put(session, draft, period, text)
    with store.begin() as session:
        lock_video(session, video.id)
        draft = read_material(session, video, period)
        if draft is None:
            return None
        return _put(session, draft, period, recap_text(draft, None))


def _put(session: Session, draft: RecapMaterial, period: Period, text: str) -> Recap:
    put_recap(session, draft.video, period, draft.span, text, draft.clip)
    return Recap(
        video=draft.video,
        title=draft.title,
        kind=period.kind,
        period=period.name,
        span=draft.span,
        text=text,
    )


def read_material(session: Session, video: Video, period: Period) -> RecapMaterial | None:
    """Return what a recap of a video rests on; None if nothing of the period is in memory."""
    known, began = known_video(session, video.id), began_at(session, video.id)
    if known is None or began is None:
        return None
    # The video time of a period; None if it ended before the video began.
    moments = (period.start, period.end)
    start, end = ((moment - began) / timedelta(milliseconds=1) for moment in moments)
    span = None if end <= 0 else TimeSpan.of(max(0, round(start)), round(end))
    clip = None if span is None else last_clip_within(session, video.id, span)
    if span is None or clip is None:
        return None
    people = people_at(session, video.id, clip)
    count = count_segments(session, video.id, clip)
    segments = segments_in_time(session, video.id, clip, 0, count)
    within = [one for one in segments if one.span.overlap_ms(span)]
    events = tuple(display_segment(one, people) for one in chosen_events(within, span))
    return RecapMaterial(video.id, known.title, span, clip, period.name, began, events)


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


# The language model that writes recaps, where a profile has one for writing.


def recap_model(workspace: Workspace) -> ModelFor:
    """Return what makes the model of a video's recap; its calls are recorded with the video."""

    def model_for(video: Video, clip: int) -> BuilderModel | None:
        model = builder_model(workspace, video, BUILDER)
        if model is not None:
            model.begin_step(clip)
        return model

    return model_for
