"""Writes the documents of events: what was said, read and seen in each, or what a model says.

What a language model is asked and replies, for them, for summaries and for plans, is here too.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt

from agent.builder import AskModel, BuildModels, MemoryBuilder, note_rules
from agent.harness.inform import quote_untrusted
from agent.reasoners.port import Unreadable
from domain.asking import Question
from domain.built import BuiltFrame, Change, Node, WatchedClip
from domain.errors import BlobGone
from domain.time import TimeSpan, format_clock
from domain.trajectory import EvidenceRetrieved
from domain.words import one_line
from models.messages import join_lines, prompts_beside, sanitise_generated
from models.structured import StrictReply
from strategies.asked import question_block
from strategies.event_documents import DocumentBuild, clip_at
from strategies.kept_frames import spread_frames
from strategies.policy_parts import after_complaint, ask_sound, made_up, offering
from strategies.vam.settings import DAY_S, SearchQuery, Source, VisualMemorySettings
from strategies.vam.times import TimeRange, clock_words
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


# Documents of events and summaries by a language model.


prompt = prompts_beside(__file__)

# What is shown to a language model: VAM's prompts with untrusted text made safe; pure.

NOTHING = "(nothing yet)"
SHOWN = 900
"""Characters of a result that the history shows."""
MOST_SHOWN = 20
"""Results of a turn that the history shows."""


def plan_system(rounds: int, tools: Iterable[str], sources: Iterable[str]) -> str:
    """Return the instructions of the rounds; only what is offered is named."""
    named = ", ".join(sources)
    actions = [prompt(f"plan_{tool}", sources=named) for tool in (*tools, "answer")]
    return prompt("plan_system", actions="\n".join(actions), rounds=rounds)


def plan_page(question: Question, history: str, number: int, rounds: int, complaint: str) -> str:
    """Return the request for the action of a round; ``complaint`` is about the last reply."""
    asked, shown = question_block(question), history or NOTHING
    page = prompt("plan", question=asked, history=shown, round=number, rounds=rounds)
    return after_complaint(page, complaint)


def conclude_page(question: Question, history: str, complaint: str) -> str:
    page = prompt("conclude", question=question_block(question), history=history or NOTHING)
    return after_complaint(page, complaint)


def history_of(searches: Iterable[EvidenceRetrieved]) -> str:
    """Return all turns with their results, each with its place."""
    return "\n".join(turn_block(number, one) for number, one in enumerate(searches, 1))


def turn_block(number: int, made: EvidenceRetrieved) -> str:
    """Return a turn with its results, or why it was refused."""
    queries = [one["q"] for one in made.arguments.get("queries", ())]
    asked = " / ".join(queries) or made.query
    head = f"turn {number}: {made.mode}: {quote_untrusted(asked)}"
    if made.refused:
        return "\n".join(["<found>", head, f"refused: {quote_untrusted(made.refused)}", "</found>"])
    lines = [
        f"{place}. [{one.ref}] {one.span} {one.score:.2f}: {quote_untrusted(one.full_text, SHOWN)}"
        for place, one in enumerate(made.evidence[:MOST_SHOWN])
    ]
    searched = f"searched: {quote_untrusted(made.searched)}"
    return "\n".join(["<found>", head, searched, join_lines(lines) or NOTHING, "</found>"])


# What a language model replies to VAM's prompts; unknown keys are refused everywhere.

LONGEST_LINE = 600
"""Most characters of a line of a document, since later prompts repeat it."""


class WrittenLines(StrictReply):
    """The lines of a document."""

    lines: list[str] = Field(min_length=1)

    @property
    def texts(self) -> list[str]:
        """The lines, each on one line and once."""
        return list(dict.fromkeys(filter(None, map(one_line, self.lines))))

    def complaints(self, material: Iterable[str]) -> list[str]:
        """Return what the model is asked to put right, given what it wrote of."""
        wrong = [] if self.texts else ["all lines are empty"]
        if any(len(text) > LONGEST_LINE for text in self.texts):
            wrong.append(f"a line is longer than {LONGEST_LINE} characters")
        return [*wrong, *made_up(self.texts, material)]


class SeenFrame(StrictReply):
    """What is seen on a frame."""

    number: NonNegativeInt
    seen: str


class InspectReply(StrictReply):
    """What frames show of a question."""

    shown: bool
    frames: list[SeenFrame]


class RouteReply(StrictReply):
    """How a question is answered."""

    reason: str
    route: Literal["answer", "retrieve", "summarize"]


class PlannedSearch(StrictReply):
    """Search."""

    kind: Literal["search"]
    queries: list[SearchQuery] = Field(default=[], max_length=8)
    sources: list[Source] = Field(default=[])
    times: TimeRange | None = None
    visual_ref: str | None = None
    joint: bool = False
    question: str = ""


class PlannedInspection(StrictReply):
    """Look at frames."""

    kind: Literal["inspect"]
    question: str
    refs: list[str] = Field(default=[], max_length=16)
    start_s: float | None = None
    end_s: float | None = None
    joint: bool = True


class PlannedSummary(StrictReply):
    """Summarise a span."""

    kind: Literal["summarize"]
    prompt: str
    granularity_s: float = Field(gt=0, le=DAY_S)
    start_s: float | None = None
    end_s: float | None = None


class BestRef(StrictReply):
    """A result by its turn and its place there."""

    turn: int = Field(description="from 1")
    result: int = Field(description="from 0")


class PlannedAnswer(StrictReply):
    """Answer."""

    kind: Literal["answer"]
    found: bool = Field(description="whether what was found answers the question")
    answer: str
    option: str | None = Field(default=None, description="the letter, where there are options")
    best_ref: BestRef | None = None


class PlannedReply(StrictReply):
    """One action, and why."""

    reason: str
    action: Annotated[
        PlannedSearch | PlannedInspection | PlannedSummary | PlannedAnswer,
        Field(discriminator="kind"),
    ]


def plan_form(kinds: Collection[str], sources: Sequence[str]) -> type[PlannedReply]:
    """Return the schema of an action: only these kinds, and searches of these sources."""
    reply = offering(PlannedReply, kinds)
    definitions = reply.model_json_schema()["$defs"]
    if "Source" in definitions:
        definitions["Source"]["enum"] = list(sources)
    return reply


def write_document(
    model: AskModel,
    models: BuildModels,
    settings: VisualMemorySettings,
    span: TimeSpan,
    lines: Sequence[str],
    frames: Sequence[BuiltFrame],
) -> list[str]:
    """Return the lines of an event, from what is known of it, its frames and its video.

    Args:
        model: the language model.
        models: what loads images and video.

    Raises:
        Unreadable: no reply can be read.
    """
    images, labels = [], []
    for frame in spread_frames(frames, settings.document_frames) if model.sees else []:
        with suppress(BlobGone):  # Those whose files are gone are left out.
            images.append(models.load_image(frame.blob))
            labels.append(format_clock(frame.time_ms))
    if model.sees and (video := models.load_clip(span)) is not None:
        images.append(video)
        labels.append(f"a video with sound, from {format_clock(span.start_ms)}")
    rules = prompt("document_system", lines=settings.document_lines)
    page = prompt("document", lines=shown_lines(lines), **clock_times(span, models.began))
    return write_lines(model, "document", rules, page, lines, images, labels)


def write_lines(
    model: AskModel,
    purpose: str,
    rules: str,
    page: str,
    material: Iterable[str],
    images: Sequence[bytes] = (),
    labels: Sequence[str] = (),
) -> list[str]:
    """Ask for lines, once more with the complaints if they cannot be used.

    Raises:
        Unreadable: they cannot be used then either.
    """
    known = list(material)
    return ask_sound(
        model.ask,
        purpose,
        rules,
        page,
        WrittenLines,
        lambda reply: reply.complaints(known),
        strict=True,
        images=images,
        labels=labels,
    ).texts


def shown_lines(lines: Iterable[str]) -> str:
    return join_lines(map(sanitise_generated, lines))


def clock_times(span: TimeSpan, began: datetime | None) -> dict[str, str]:
    """Return the slots of a prompt that say when something is, of a stream by the clock too."""
    end = format_clock(span.end_ms)
    day = f" of the video, {clock_words(began, span)} by the clock" if began else ""
    return {"start": format_clock(span.start_ms), "end": f"{end}{day}"}
