"""Writes the documents of events: what was said, read and seen in each, or what a model says."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

from agent.builder import MemoryBuilder, note_rules
from agent.reasoners.port import Unreadable
from domain.built import Change, Node, WatchedClip
from domain.time import TimeSpan
from strategies.event_documents import DocumentBuild, clip_at
from strategies.vam.model_writer import write_document
from strategies.vam.settings import VisualMemorySettings
from strategies.vam.visual_memory import FrameReason

_LOG = logging.getLogger(f"homer.{__name__}")


def event_builder(settings: VisualMemorySettings) -> MemoryBuilder:
    """Return what builds a minute at a time.

    Where an event begins is known only so long after it as an event may last: documents are written
    that far behind.
    """
    return MemoryBuilder(
        version=1,
        step_ms=settings.step_ms,
        look_back_ms=3 * settings.event_ms,
        begin=partial(EventBuild, settings),
    )


class EventBuild(DocumentBuild[VisualMemorySettings]):
    """One build of a video."""

    def step(self, clips: Sequence[WatchedClip], *, ended: bool) -> Change:
        """Return the documents of the events that are complete after these clips."""
        if not clips:
            return Change()
        self._clips += clips
        longest, known_ms = self._settings.event_ms, clips[-1].span.end_ms
        spans = list(
            self._ended(
                lambda frame: frame.reason == FrameReason.EVENT,
                longest,
                known_ms if ended else known_ms - longest,
                ended=ended,
            )
        )
        nodes = [self._event(span, clip_at(clips, span.end_ms + longest)) for span in spans]
        self._last = spans[-1] if spans else self._last
        return self._change(nodes, clips[-1], self._start)

    def _event(self, span: TimeSpan, clip: int) -> Node:
        """Return the document of an event; it is empty where nothing was said, read or seen."""
        # The model's lines; those by rules without a model, or without a reply.
        lines = self._lines(span)
        frames = [one for one in self._frames() if span.start_ms <= one.time_ms < span.end_ms]
        if self._models.model is not None and (lines or frames):
            try:
                lines = write_document(
                    self._models.model, self._models, self._settings, span, lines, frames
                )
            except Unreadable:
                note_rules(_LOG, "the document of %s is by rules: no reply could be read", span)
        return self._document(span, clip, lines)
