"""The event writer with a language model (section 3.3). Its patches are checked by code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from pydantic import BaseModel, Field, NonNegativeInt

from domain.errors import ModelError, ReplayMiss
from domain.memories import EdgeDraft, EventPatch, SegmentDraft
from domain.settings import MemorySettings
from memory.prompts import foreign, listed, noted, prompt
from memory.writers.llm_clip import Chat
from memory.writers.port import EventWindow, KnownEdge, KnownSegment, WindowLine
from models.messages import Message, assistant, system, user
from models.reply_schema import pinned

TRIES = 2
"""How often a patch is asked for that can be read at all."""


LABEL, SUMMARY, RATIONALE = 200, 4_000, 1_000
"""Characters of what is kept: later prompts repeat it."""


class WrittenSegment(BaseModel):  # Its name is a key of "$defs": it stays.
    """A stretch of clips in which one thing happens."""

    model_config = pinned("WrittenSegment", "A stretch of clips in which one thing happens.")

    label: str = Field(min_length=1)
    summary: str
    clips: list[NonNegativeInt]
    extends: str | None = Field(default=None, description="exact label of the one it goes on with")


class WrittenEdge(BaseModel):  # Its name is a key of "$defs": it stays.
    """How one segment stands to another, by exact labels."""

    model_config = pinned("WrittenEdge", "How one segment stands to another, by exact labels.")

    source: str
    target: str
    relation: str
    explicit: bool = False
    confidence: float = 0.5
    rationale: str = ""
    evidence: list[NonNegativeInt] = []
    removed: bool = False


class WrittenPatch(BaseModel):
    """A patch to the event graph."""

    model_config = pinned("WrittenPatch", "A patch to the event graph.")

    segments: list[WrittenSegment]
    edges: list[WrittenEdge] = []


class LlmEventWriter:
    """Proposes patches with a language model.

    Args:
        chat: Makes the model of the profile's role ``writer``.
        settings: The limits that the model is told.
    """

    name = "llm"

    def __init__(self, chat: Chat, settings: MemorySettings) -> None:
        self._chat, self._settings = chat, settings

    def patch(self, window: EventWindow) -> EventPatch:
        """The model's patch; checking it is the caller's.

        Raises:
            ModelError: the model failed, or answered nothing that can be read.
        """
        return self._asked(window, self._first(window), "events")

    def repair(
        self, window: EventWindow, patch: EventPatch, complaints: Sequence[str]
    ) -> EventPatch:
        """The model's patch after the complaints.

        Raises:
            ModelError: the model failed, or answered nothing that can be read.
        """
        text = prompt("events_repair", complaints=listed(f"- {foreign(one)}" for one in complaints))
        turns = [*self._first(window), assistant(patch.model_dump_json()), user(text)]
        return self._asked(window, turns, "events-repair")

    def _asked(self, window: EventWindow, messages: list[Message], purpose: str) -> EventPatch:
        chat = self._chat(window.sink, window.replay)
        for left in reversed(range(TRIES)):
            try:
                return _as_patch(chat.ask(messages, WrittenPatch, purpose=purpose).value)
            except ReplayMiss:
                raise
            except ModelError as error:
                if not left:
                    raise
                complaint = prompt("events_repair", complaints=foreign(str(error)))
                messages = [*messages, user(complaint)]
        raise AssertionError("unreachable")

    def _first(self, window: EventWindow) -> list[Message]:
        limits = self._settings
        told = prompt(
            "events_system",
            least=limits.segments_min,
            most=limits.segments_max,
            words=limits.label_words,
            clips=limits.segment_clips,
        )
        page = prompt(
            "events",
            previous=listed(_segment(one) for one in window.previous),
            edges=listed(_edge(one) for one in window.edges),
            related=listed(_segment(one) for one in window.related),
            new=", ".join(str(clip) for clip in window.new),
            memories=listed(_memories(window.lines)),
        )
        return [system(told), user(page)]


def _as_patch(written: WrittenPatch) -> EventPatch:
    segments = [
        SegmentDraft(
            label=_plain(one.label)[:LABEL] or " ",
            summary=one.summary.strip()[:SUMMARY],
            clips=tuple(one.clips),
            extends=_plain(one.extends or "") or None,
        )
        for one in written.segments
    ]
    edges = [
        EdgeDraft.model_validate(
            one.model_dump()
            | {"source": _plain(one.source)[:LABEL], "target": _plain(one.target)[:LABEL]}
            | {"rationale": one.rationale[:RATIONALE]}
        )
        for one in written.edges
    ]
    return EventPatch(segments=tuple(segments), edges=tuple(edges))


def _plain(label: str) -> str:
    return noted(label).strip()


def _segment(one: KnownSegment) -> str:
    clips = ", ".join(str(clip) for clip in one.clips)
    return f'"{noted(one.label)}" ({one.span}, clips {clips}): {foreign(one.summary)}'


def _edge(one: KnownEdge) -> str:
    names = f'"{noted(one.source)}" {one.relation} "{noted(one.target)}"'
    return f"{names} ({one.confidence:.2f}): {noted(one.rationale)}"


def _memories(lines: Sequence[WindowLine]) -> Iterable[str]:
    for clip, of_clip in groupby(lines, key=lambda line: line.clip):
        yield f"clip {clip}:"
        yield from (f"- {foreign(line.told)}" for line in of_clip)
