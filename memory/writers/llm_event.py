"""The event writer with a language model (section 3.3). Its patches are checked by code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby

from domain.errors import ModelError, NoReply, ReplayMiss
from domain.memories import OpenSegment
from domain.settings import MemorySettings
from memory.patches import WrittenPatch
from memory.writers.clip_page import subsample
from memory.writers.llm_clip import ChatFactory
from memory.writers.port import EventWindow
from models.messages import (
    Message,
    assistant,
    join_lines,
    prompts_beside,
    request_tokens,
    sanitise,
    sanitise_generated,
    system,
    text_tokens,
    user,
)

prompt = prompts_beside(__file__)

MAX_TRIES = 2
"""Most requests for a patch while its reply cannot be parsed."""

CLIPS_A_SEGMENT = 3
"""A window asks for a segment for so many of its clips at least."""
MAX_LABEL, MAX_SUMMARY, MAX_RATIONALE = 200, 4_000, 1_000
"""Most characters that are stored, since later prompts repeat them."""


class LlmEventWriter:
    """Proposes patches with a language model.

    Args:
        chat: Makes the model of the profile's role ``writer``.
        settings: The limits that the prompt states.
        context: Tokens of a request and its reply, where the model's context is bounded.
    """

    def __init__(
        self, chat: ChatFactory, settings: MemorySettings, context: int | None = None
    ) -> None:
        self._chat, self._settings, self._context = chat, settings, context

    @property
    def name(self) -> str:
        """Return the model's name in the profile."""
        return self._chat(None, None).model

    def patch(self, window: EventWindow) -> WrittenPatch:
        """Return the model's patch; the caller checks it.

        Raises:
            ModelError: the model failed, or answered nothing that can be read.
        """
        return self._ask(window, self._first_messages(window), "events")

    def repair(
        self, window: EventWindow, patch: WrittenPatch, complaints: Sequence[str]
    ) -> WrittenPatch:
        """Return the model's patch after the complaints.

        Raises:
            ModelError: the model failed, or answered nothing that can be read.
        """
        text = prompt(
            "events_repair",
            complaints=join_lines(f"- {sanitise(complaint)}" for complaint in complaints),
        )
        turns = [*self._first_messages(window), assistant(patch.model_dump_json()), user(text)]
        return self._ask(window, turns, "events-repair")

    def _ask(self, window: EventWindow, messages: list[Message], purpose: str) -> WrittenPatch:
        chat = self._chat(window.sink, window.replay)
        for tries_left in reversed(range(MAX_TRIES)):
            try:
                return clean_patch(chat.ask(messages, WrittenPatch, purpose=purpose))
            except (ReplayMiss, NoReply):
                raise
            except ModelError as error:
                if not tries_left:
                    raise
                complaint = prompt("events_repair", complaints=sanitise(str(error)))
                messages = [*messages, user(complaint)]
        raise AssertionError("unreachable")

    @property
    def blank_tokens(self) -> int:
        """Estimate the tokens of a request about no clips at all."""
        blank = EventWindow(video="", at_clip=0, clips={}, new=())
        return request_tokens(self._first_messages(blank), WrittenPatch, 0)

    def _first_messages(self, window: EventWindow) -> list[Message]:
        limits = self._settings
        rules = prompt(
            "events_system",
            least=min(limits.segments_min, max(1, -(-len(window.new) // CLIPS_A_SEGMENT))),
            most=min(limits.segments_max, max(1, len(window.new))),
            words=limits.label_words,
            clips=limits.segment_clips,
        )
        lines = window.lines
        if self._context is not None:
            # A third is left for the rules, the earlier segments and the reply.
            room, taken = 2 * self._context // 3, sum(map(text_tokens, _memory_lines(window)))
            lines = subsample(lines, len(lines) * min(room, taken) // max(1, taken))
        labels = {segment.number: segment.label for segment in window.previous}
        edges = []
        for edge in window.edges:
            source, target = (sanitise_generated(labels[end]) for end in edge.key[:2])
            link = f'"{source}" {edge.relation} "{target}" ({edge.confidence:.2f})'
            edges.append(f"{link}: {sanitise_generated(edge.rationale)}")
        page = prompt(
            "events",
            previous=join_lines(_segment_line(segment, window) for segment in window.previous),
            edges=join_lines(edges),
            related=join_lines(_segment_line(segment, window) for segment in window.related),
            new=", ".join(str(clip) for clip in window.new),
            memories=join_lines(_memory_lines(replace(window, lines=lines))),
        )
        return [system(rules), user(page)]


def clean_patch(patch: WrittenPatch) -> WrittenPatch:
    """Return a patch with plain labels, and nothing longer than is stored."""
    segments = [
        segment.model_copy(
            update={
                "label": _plain_label(segment.label)[:MAX_LABEL] or " ",
                "summary": segment.summary.strip()[:MAX_SUMMARY],
                "extends": _plain_label(segment.extends or "") or None,
            }
        )
        for segment in patch.segments
    ]
    edges = [
        edge.model_copy(
            update={
                "source": _plain_label(edge.source)[:MAX_LABEL],
                "target": _plain_label(edge.target)[:MAX_LABEL],
                "rationale": edge.rationale[:MAX_RATIONALE],
            }
        )
        for edge in patch.edges
    ]
    return WrittenPatch(segments=tuple(segments), edges=tuple(edges))


def _plain_label(label: str) -> str:
    return sanitise_generated(label).strip()


def _segment_line(segment: OpenSegment, window: EventWindow) -> str:
    clips = ", ".join(str(clip) for clip in segment.clips)
    label = sanitise_generated(segment.label)
    summary = sanitise_generated(window.people.display(segment.summary))
    return f'"{label}" ({window.span(segment.clips)}, clips {clips}): {summary}'


def _memory_lines(window: EventWindow) -> Iterable[str]:
    """Yield the lines of each clip with their times and kinds, one tag or name for each person."""
    for clip, of_clip in groupby(window.lines, key=lambda line: line.clip):
        yield f"clip {clip}:"
        for line in of_clip:
            kind = "fact" if line.fact else line.source
            text = sanitise_generated(window.people.display(line.attributed_text))
            yield f"- {line.span} {kind}: {text}"
