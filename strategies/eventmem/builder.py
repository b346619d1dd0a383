"""Writes the long-term memory: a document of each event, with change logs."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import pairwise

from agent.builder import BuildModels, note_rules, note_writer
from agent.reasoners.port import Unreadable
from domain.built import RULES, BuiltMemory, Change, NodeDraft, WatchedClip
from domain.media import Video
from domain.time import TimeSpan
from strategies.event_documents import BREAK, EVENT, OPEN, LineVectors, clip_at, document_lines
from strategies.eventmem.event_memory import is_first
from strategies.eventmem.long_term import (
    NEXT,
    SINCE,
    LongMemoryWriter,
    Presence,
    next_log,
    presence,
    since_log,
)
from strategies.eventmem.settings import EventMemorySettings

_LOG = logging.getLogger(f"homer.{__name__}")


class LongMemoryBuilder:
    """Builds a minute at a time.

    An event is written when the one after it has ended, since it says how it passes into that. What
    came since is one document that is written anew with every step.
    """

    version = 1

    def __init__(self, settings: EventMemorySettings) -> None:
        self._settings = settings
        self.step_ms = settings.step_ms
        self.look_back_ms = 4 * settings.document_ms

    def begin(
        self,
        video: Video,  # noqa: ARG002 - events are the same of every video
        built: BuiltMemory,
        earlier: Sequence[WatchedClip],
        models: BuildModels,
    ) -> LongMemoryBuild:
        """Begin or resume the build of a video."""
        return LongMemoryBuild(self._settings, built, earlier, models)


class LongMemoryBuild:
    """One build: the clips of which not all events have their document.

    Args:
        built: what was built before.
        earlier: the clips of the last ``look_back_ms`` that were built.
        models: the text encoder, and the language model if there is one.
    """

    def __init__(
        self,
        settings: EventMemorySettings,
        built: BuiltMemory,
        earlier: Sequence[WatchedClip],
        models: BuildModels,
    ) -> None:
        self._settings = settings
        self._writer = LongMemoryWriter(models) if models.model else None
        self._clips = list(earlier)
        events = [node for node in built.nodes if node.level == EVENT]
        last = max(events, key=lambda node: node.number, default=None)
        self._before = last.span if last else None
        self._number = last.number + 1 if last else 0
        self._vectors = LineVectors(models.embed)

    def step(self, clips: Sequence[WatchedClip], *, ended: bool) -> Change:
        """Return the documents of the events that can be written after these clips."""
        if not clips:
            return Change()
        self._clips += clips
        seen_ms = clips[-1].span.end_ms
        # The events that have ended and are not written; too long ones are written in parts.
        spans = list[TimeSpan]()
        start = self._before.end_ms if self._before else 0
        begins = sorted(
            frame.time_ms
            for frame in (frame for clip in self._clips for frame in clip.frames)
            if is_first(frame)
        )
        # The first event goes from the video's start on, whenever its first frame is shown.
        begins = begins if start else begins[1:]
        while start < seen_ms:
            end = min([start + self._settings.document_ms, *(t for t in begins if t > start)])
            if end > seen_ms and not ended:
                break
            spans.append(TimeSpan.of(start, min(end, seen_ms)))
            start = min(end, seen_ms)
        written = [self._event(span, following, clips) for span, following in pairwise(spans)]
        if ended and spans:
            written.append(self._event(spans[-1], None, clips))
        start = self._before.end_ms if self._before else 0
        open_span = TimeSpan.of(start, max(start, seen_ms))
        if lines := self._lines(open_span):
            note_writer(RULES)
        written.append(self._node(OPEN, 0, open_span, clips[-1].clip, lines))
        keep_ms = self._before.start_ms if self._before else 0
        self._clips = [clip for clip in self._clips if clip.span.end_ms > keep_ms]
        self._vectors.keep(written[-1].text.split(BREAK))
        return Change(nodes=written)

    def _lines(self, span: TimeSpan) -> list[str]:
        return document_lines(self._clips, span)

    def _present(self, span: TimeSpan | None) -> Presence:
        return presence(self._clips, span) if span else Presence()

    def _event(
        self, span: TimeSpan, following: TimeSpan | None, clips: Sequence[WatchedClip]
    ) -> NodeDraft:
        """Return the document of an event; ``following`` is None for the last of a video."""
        number, self._number = self._number, self._number + 1
        before, self._before = self._before, span
        end_ms = following.end_ms if following else span.end_ms
        clip = clip_at(clips, end_ms)
        # The caption's lines, and the change logs: by rules without a model or a reply.
        lines, now = self._lines(span), self._present(span)
        logs = [since_log(self._present(before), now)] if before else []
        logs += [next_log(now, self._present(following))] if following else []
        if self._writer is not None and lines:
            earlier, later = (self._lines(one) if one else [] for one in (before, following))
            try:
                reply = self._writer.event(span, lines, earlier, later)
                said = [SINCE + reply.change] if before else []
                said += [NEXT + reply.onward] if following else []
                lines, logs = [reply.text], [" ".join(one.split()) for one in said]
            except Unreadable:
                note_rules(_LOG, "the caption of %s is by rules: no reply could be read", span)
        return self._node(EVENT, number, span, clip, lines, logs if lines else [])

    def _node(
        self,
        level: str,
        number: int,
        span: TimeSpan,
        clip: int,
        lines: list[str],
        logs: Sequence[str] = (),
    ) -> NodeDraft:
        text = BREAK.join([*lines, *logs])
        return NodeDraft(level, number, text, span, clip, vector=self._vectors.mean(lines))
