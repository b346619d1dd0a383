"""Writes the long-term memory: a document of each event, with change logs."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from agent.builder import MemoryBuilder, note_rules
from agent.reasoners.port import Unreadable
from domain.built import Change, Node, WatchedClip
from domain.texts import one_line
from domain.time import TimeSpan
from strategies.event_documents import DocumentBuild, clip_at
from strategies.eventmem.event_memory import is_first
from strategies.eventmem.long_term import (
    NEXT,
    SINCE,
    next_log,
    presence,
    since_log,
    write_event,
)
from strategies.eventmem.settings import EventMemorySettings

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
