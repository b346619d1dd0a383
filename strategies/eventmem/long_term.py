"""The long-term memory: each event's lines, how it differs from the one before, how it goes on."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field

from agent.builder import AskModel, MemoryBuilder, note_rules
from agent.reasoners.port import Unreadable
from domain.built import Change, Node, WatchedClip
from domain.memories import MemorySource
from domain.people import TAG
from domain.time import TimeSpan, format_clock
from domain.words import one_line
from models.messages import join_lines, prompts_beside, sanitise_generated
from models.structured import StrictReply
from strategies.event_documents import DocumentBuild, clip_at
from strategies.eventmem.event_memory import is_first
from strategies.eventmem.settings import EventMemorySettings
from strategies.policy_parts import ask_sound, made_up

prompt = prompts_beside(__file__)

SINCE, NEXT = "Since the event before: ", "Into the next event: "
"""How the two lines of a change log begin."""
_COUNT = re.compile(r"^(?:an?|\d+) ")
NAMED = 8
"""People and things that a change log names at most."""


@dataclass(frozen=True)
class Presence:
    """Who and what is there in an event, each in the order in which it is first there."""

    people: tuple[str, ...] = ()
    things: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        return (*self.people, *self.things)


def presence(clips: Iterable[WatchedClip], span: TimeSpan) -> Presence:
    """Return who is seen, heard or named by tag, and which things are detected, in a span."""
    lines = [
        line
        for clip in clips
        for line in clip.lines
        if span.start_ms <= line.span.start_ms < span.end_ms
    ]
    lines.sort(key=lambda line: (line.span.start_ms, line.id))
    people = dict.fromkeys(
        who
        for line in lines
        for who in [
            *([line.speaker] if line.speaker else []),
            *line.tags,
            *(match[0] for match in TAG.finditer(line.text)),
        ]
    )
    things = dict.fromkeys(
        _COUNT.sub("", one)
        for line in lines
        # Such as "Seen: 2 people, a cup.".
        if line.source is MemorySource.OBJECTS
        for one in line.text.partition(":")[2].strip(" .").split(", ")
        if one
    )
    return Presence(tuple(people), tuple(things))


def since_log(before: Presence, now: Presence) -> str:
    new = [one for one in now.all if one not in before.all][:NAMED]
    gone = [one for one in before.all if one not in now.all][:NAMED]
    parts = [f"new {', '.join(new)}" if new else "", f"gone {', '.join(gone)}" if gone else ""]
    return SINCE + ("; ".join(part for part in parts if part) or "the same people and things")


def next_log(now: Presence, after: Presence) -> str:
    """Return how an event passes into the next."""
    stay = [one for one in now.all if one in after.all][:NAMED]
    return NEXT + (f"{', '.join(stay)} stay" if stay else "nobody and nothing stays")


# What a language model replies to EventMemAgent's prompts; unknown keys are refused everywhere.

LONGEST = 1_200
"""Most characters of a caption or change, since later prompts repeat it."""


class EventReply(StrictReply):
    """The caption of an event, and how it changes."""

    caption: str = Field(min_length=1)
    change: str
    onward: str

    @property
    def text(self) -> str:
        return one_line(self.caption)

    def complaints(self, material: Iterable[str]) -> list[str]:
        """Return what the model is asked to put right, given what it wrote of."""
        texts = [self.caption, self.change, self.onward]
        wrong = [] if self.text else ["the caption is empty"]
        if any(len(text) > LONGEST for text in texts):
            wrong.append(f"a text is longer than {LONGEST} characters")
        return [*wrong, *made_up(texts, material)]


class SearchStep(StrictReply):
    """Search the long-term memory by a query or a time."""

    tool: Literal["search_memory"]
    query: str = ""
    start_s: float | None = None
    end_s: float | None = None


class OcrStep(StrictReply):
    """Read the text on a frame, or on those of an event."""

    tool: Literal["ocr"]
    frame_index: int | None = None
    event_id: int | None = None


class DetectStep(StrictReply):
    """Detect things on a frame, or on those of an event."""

    tool: Literal["detect_objects"]
    labels: list[str] = Field(min_length=1)
    frame_index: int | None = None
    event_id: int | None = None


class AnswerStep(StrictReply):
    """Answer."""

    tool: Literal["answer"]
    found: bool = Field(description="whether what was found answers the question")
    boxed: str = Field(description="the answer; the letter alone where there are options")
    evidence: list[str] = Field(default=[], description="refs such as f12 or n3")


class ReactReply(StrictReply):
    """One thought, and one action or the answer."""

    thought: str
    action: Annotated[SearchStep | OcrStep | DetectStep | AnswerStep, Field(discriminator="tool")]


# Writes the caption and the change logs of an event with a language model.

SHOWN = 60
"""Lines that are shown of an event at most, the last ones of the one before."""
AROUND = 12
"""Lines that are shown of the events before and after."""


def write_event(
    model: AskModel,
    span: TimeSpan,
    lines: Sequence[str],
    before: Sequence[str],
    after: Sequence[str],
) -> EventReply:
    """Return the caption and the changes of an event.

    Raises:
        Unreadable: no reply can be used.
    """
    page = prompt(
        "event",
        start=format_clock(span.start_ms),
        end=format_clock(span.end_ms),
        before=_shown(before[-AROUND:]),
        lines=_shown(lines[:SHOWN]),
        after=_shown(after[:AROUND]),
    )
    material = [*before, *lines, *after]
    return ask_sound(
        model.ask,
        "event",
        prompt("event_system"),
        page,
        EventReply,
        lambda reply: reply.complaints(material),
        strict=True,
    )


def _shown(lines: Iterable[str]) -> str:
    return join_lines(map(sanitise_generated, lines)) or "(nothing)"


# Writes the long-term memory: a document of each event, with change logs.


_LOG = logging.getLogger(f"homer.{__name__}")


def long_memory_builder(settings: EventMemorySettings) -> MemoryBuilder:
    """Return what builds a minute at a time.

    An event is written when the one after it has ended, since it says how it passes into that.
    """
    return MemoryBuilder(
        version=1,
        step_ms=settings.step_ms,
        look_back_ms=4 * settings.document_ms,
        begin=partial(LongMemoryBuild, settings),
    )


class LongMemoryBuild(DocumentBuild[EventMemorySettings]):
    """One build of a video."""

    def step(self, clips: Sequence[WatchedClip], *, ended: bool) -> Change:
        """Return the documents of the events that can be written after these clips."""
        if not clips:
            return Change()
        self._clips += clips
        # The events that have ended and are not written.
        longest, seen_ms = self._settings.document_ms, clips[-1].span.end_ms
        spans = list(self._ended(is_first, longest, seen_ms, ended=ended))
        written = [self._event(span, following, clips) for span, following in pairwise(spans)]
        if ended and spans:
            written.append(self._event(spans[-1], None, clips))
        return self._change(written, clips[-1], self._last.start_ms if self._last else 0)

    def _event(
        self, span: TimeSpan, following: TimeSpan | None, clips: Sequence[WatchedClip]
    ) -> Node:
        """Return the document of an event; ``following`` is None for the last of a video."""
        before, self._last = self._last, span
        clip = clip_at(clips, following.end_ms if following else span.end_ms)
        # The caption's lines, and the change logs: by rules without a model or a reply.
        lines, now = self._lines(span), presence(self._clips, span)
        logs = [since_log(presence(self._clips, before), now)] if before else []
        logs += [next_log(now, presence(self._clips, following))] if following else []
        if self._models.model is not None and lines:
            earlier, later = self._lines(before), self._lines(following)
            try:
                reply = write_event(self._models.model, span, lines, earlier, later)
                said = [SINCE + reply.change] if before else []
                said += [NEXT + reply.onward] if following else []
                lines, logs = [reply.text], [one_line(one) for one in said]
            except Unreadable:
                note_rules(_LOG, "the caption of %s is by rules: no reply could be read", span)
        return self._document(span, clip, lines, logs if lines else [])
