"""Writes the documents of events: what was said, read and seen in each, or what a model says."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from agent.builder import BuildModels, note_rules, note_writer
from agent.reasoners.port import Unreadable
from domain.built import RULES, BuiltFrame, BuiltMemory, Change, NodeDraft, WatchedClip
from domain.media import Video
from domain.time import TimeSpan
from strategies.event_documents import BREAK, EVENT, OPEN, LineVectors, clip_at, document_lines
from strategies.vam.model_writer import DocumentWriter
from strategies.vam.settings import VisualMemorySettings
from strategies.vam.visual_memory import FrameReason

_LOG = logging.getLogger(f"homer.{__name__}")


class EventBuilder:
    """Builds a minute at a time.

    Where an event begins is known only so long after it as an event may last: documents are written
    that far behind. What came since is one document that is written anew with every step.
    """

    version = 1

    def __init__(self, settings: VisualMemorySettings) -> None:
        self._settings = settings
        self.step_ms = settings.step_ms
        self.look_back_ms = 3 * settings.event_ms

    def begin(
        self,
        video: Video,  # noqa: ARG002 - events are the same of every video
        built: BuiltMemory,
        earlier: Sequence[WatchedClip],
        models: BuildModels,
    ) -> EventBuild:
        """Begin or resume the build of a video."""
        return EventBuild(self._settings, built, earlier, models)


class EventBuild:
    """One build: the clips of which not all events have their document.

    Args:
        built: what was built before.
        earlier: the clips of the last ``look_back_ms`` that were built.
        models: the text encoder, and the language model if there is one.
    """

    def __init__(
        self,
        settings: VisualMemorySettings,
        built: BuiltMemory,
        earlier: Sequence[WatchedClip],
        models: BuildModels,
    ) -> None:
        self._settings = settings
        self._writer = DocumentWriter(models, settings) if models.model else None
        self._clips = list(earlier)
        events = [node for node in built.nodes if node.level == EVENT]
        self._start = max((node.span.end_ms for node in events), default=0)
        self._number = max((node.number for node in events), default=-1) + 1
        self._vectors = LineVectors(models.embed)

    def step(self, clips: Sequence[WatchedClip], *, ended: bool) -> Change:
        """Return the documents of the events that are complete after these clips."""
        if not clips:
            return Change()
        self._clips += clips
        seen_ms = clips[-1].span.end_ms
        nodes = [self._event(span, clips) for span in self._complete(seen_ms, ended=ended)]
        self._clips = [clip for clip in self._clips if clip.span.end_ms > self._start]
        # What came since the last event, by rules.
        span = TimeSpan.of(self._start, max(self._start, seen_ms))
        if lines := document_lines(self._clips, span):
            note_writer(RULES)
        nodes.append(self._node(OPEN, 0, span, clips[-1].clip, lines))
        self._vectors.keep(nodes[-1].text.split(BREAK))
        return Change(nodes=nodes)

    def _complete(self, seen_ms: int, *, ended: bool) -> Iterator[TimeSpan]:
        """Yield the spans of the events that end by now, and go on after each."""
        longest = self._settings.event_ms
        known_ms = seen_ms if ended else seen_ms - longest
        starts = sorted(one.time_ms for one in self._frames() if one.reason == FrameReason.EVENT)
        # The first event goes from the video's start on, whenever its first frame is shown.
        starts = starts if self._start else starts[1:]
        while self._start < known_ms:
            end = min([self._start + longest, *(time for time in starts if time > self._start)])
            if end > known_ms and not ended:
                return
            span = TimeSpan.of(self._start, min(end, seen_ms))
            self._start = span.end_ms
            yield span

    def _frames(self) -> Iterator[BuiltFrame]:
        return (frame for clip in self._clips for frame in clip.frames)

    def _event(self, span: TimeSpan, clips: Sequence[WatchedClip]) -> NodeDraft:
        """Return the document of an event; it is empty where nothing was said, read or seen."""
        number, self._number = self._number, self._number + 1
        clip = clip_at(clips, span.end_ms + self._settings.event_ms)
        # The model's lines; those by rules without a model, or without a reply.
        lines = document_lines(self._clips, span)
        frames = [one for one in self._frames() if span.start_ms <= one.time_ms < span.end_ms]
        if self._writer is not None and (lines or frames):
            try:
                lines = self._writer.document(span, lines, frames)
            except Unreadable:
                note_rules(_LOG, "the document of %s is by rules: no reply could be read", span)
        return self._node(EVENT, number, span, clip, lines)

    def _node(
        self, level: str, number: int, span: TimeSpan, clip: int, lines: list[str]
    ) -> NodeDraft:
        text, vector = BREAK.join(lines), self._vectors.mean(lines)
        return NodeDraft(level, number, text, span, clip, vector=vector)
