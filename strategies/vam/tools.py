"""VAM's tools: a question to frames, and summaries of a span; searching is ``search.py``.

Frames are looked at by a language model that sees, else by OCR and the detector. Summaries are
documents of windows of any length, made on request, kept and searched.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from agent.builder import note_rules, note_writer, step_writers
from agent.harness.inform import quote_untrusted
from agent.reasoners.port import Unreadable
from agent.strategy import ToolUse
from domain.asking import Evidence
from domain.built import RULES, Change, Node
from domain.errors import BlobGone, BudgetExceeded, InputError
from domain.memories import MemoryView, Scope
from domain.moments import Retrieval
from domain.time import TimeSpan, format_clock
from domain.words import make_storable
from models.messages import prompts_beside, sanitise, system, user
from retrieval.keyframe_mode import image_evidence
from retrieval.terms import terms
from store.queries.builds import StepMade, apply_change, build_writers, read_built
from store.queries.percepts import lock_video
from strategies.event_documents import (
    BREAK,
    DocumentIndexes,
    EventDocument,
    EventDocuments,
    mean_direction,
)
from strategies.kept_frames import TEXT, FrameReader, KeptFrame, spread_frames
from strategies.vam.builder import InspectReply, clock_times, shown_lines, write_lines
from strategies.vam.search import Search
from strategies.vam.settings import LOOKING, SUMMARIES, SUMMARY, InspectArguments
from strategies.vam.strategy import FRAMES, INSPECT, SEARCH, SUMMARIZE
from strategies.vam.times import StreamClocks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from agent.builder import AskModel
    from agent.strategy import RunTool
    from models.toolbox import Toolbox
    from store.database import Store
    from strategies.event_documents import DocumentIndexes
    from strategies.vam.settings import SummarizeArguments
    from strategies.vam.times import StreamClocks


prompt = prompts_beside(__file__)

SEEN = 300
"""Characters of what is seen on a frame."""
SEEN_SCORE, SHOWN_SCORE = 0.6, 0.2
"""Scores of frames on which something was seen, and of others."""


class Inspection:
    """Looks at frames, of a span or of earlier results.

    Args:
        clocks: the times of day of streams.
    """

    def __init__(
        self, store: Store, indexes: DocumentIndexes, frames: FrameReader, clocks: StreamClocks
    ) -> None:
        self._store, self._indexes, self._frames = store, indexes, frames
        self._clocks = clocks

    def look(
        self, frames: Sequence[KeptFrame], question: str, model: AskModel | None, *, joint: bool
    ) -> tuple[dict[str, str], dict[str, str]]:
        """Return what a model saw on frames, and what OCR and the detector read on others, by ref.

        ``joint``: all are shown to the model at once, else one by one.
        """
        if model is None or not model.sees:
            return {}, {one.ref: self._frames.reading(one) for one in frames}
        seen, read = dict[str, str](), dict[str, str]()
        for group in [list(frames)] if joint else [[one] for one in frames]:
            reply = self._ask(group, question, model)
            if reply is None:
                read.update({one.ref: self._frames.reading(one) for one in group})
                continue
            for one in reply.frames:
                if one.number < len(group):
                    seen[group[one.number].ref] = quote_untrusted(one.seen, SEEN)
        return seen, read

    def shows(self, frames: Sequence[KeptFrame], question: str, model: AskModel) -> bool:
        """Check with a model that sees whether frames show what is asked; yes without a reply."""
        reply = self._ask(frames, question, model)
        return reply is None or reply.shown

    def _ask(
        self, frames: Sequence[KeptFrame], question: str, model: AskModel
    ) -> InspectReply | None:
        """Show frames to a model; None where none can be shown or no reply can be read."""
        images, labels = [], []
        for number, one in enumerate(frames):
            try:
                images.append(self._store.blobs.get(one.frame.blob))
            except BlobGone:
                continue
            labels.append(f"frame {number}, {format_clock(one.frame.time_ms)}")
        if not images:
            return None
        page = prompt("inspect", question=sanitise(question or "What is on these frames?"))
        asked = [system(prompt("inspect_system")), user(page)]
        try:
            return model.ask("inspect", asked, InspectReply, images=images, labels=labels)
        except (Unreadable, BudgetExceeded):
            return None

    def inspect(self, view: MemoryView, arguments: InspectArguments, use: ToolUse) -> Retrieval:
        """Return the frames with what is seen on them.

        Raises:
            InputError: a ref is no result in view, or frames are switched off.
        """
        if LOOKING in use.without:
            raise InputError("frames are not inspected: that part is switched off")
        found = spread_frames(list(self._named(view, arguments)), arguments.frames)
        question = make_storable(arguments.query)
        seen, readings = self.look(found, question, use.model, joint=arguments.joint)
        known = seen | readings
        scores = [SEEN_SCORE if known.get(one.ref) else SHOWN_SCORE for one in found]
        images = self._frames.show(found, scores, readings)
        evidence = tuple(
            image_evidence(one).model_copy(update={"seen": seen.get(one.ref, "")}) for one in images
        )
        words = set(terms(question))
        read = any(
            one.startswith(TEXT) or words & set(terms(one)) for one in readings.values() if one
        )
        return Retrieval(
            mode="inspect",
            query=question,
            evidence=self._clocks.named(evidence),
            images=images,
            nothing_close=not (read or any(seen.values())),
            searched=f"{len(found)} frames" if found else "no frame is kept of that time",
        )

    def _named(self, view: MemoryView, arguments: InspectArguments) -> Iterator[KeptFrame]:
        """Yield the frames that are named, each once, in order of time within each."""
        known: set[str] = set()
        spans = list[tuple[Scope, TimeSpan]]()
        for ref in arguments.refs:
            if named := self._frames.named(view, ref):
                time = named.frame.time_ms
                spans.append((named.scope, TimeSpan.of(time, time + 1)))
                continue
            found = [
                (scope, document.span)
                for scope in view.scopes
                for document in self._indexes.documents(scope)
                if document.ref == ref
            ]
            if not found:
                raise InputError(
                    f"{ref} is no result in these videos: name one that a search returned"
                )
            spans += found
        if arguments.start_s is not None and arguments.end_s is not None:
            span = TimeSpan.of(round(arguments.start_s * 1_000), round(arguments.end_s * 1_000))
            spans += [(scope, span) for scope in view.scopes]
        for scope, span in spans:
            for frame in self._frames.within(scope, span):
                if frame.ref not in known:
                    known.add(frame.ref)
                    yield frame


# VAM's tools, ready to be used; imports OpenCV.


def opened_tools(store: Store, toolbox: Toolbox, name: str) -> dict[str, RunTool]:
    """Open the tools of a strategy, which share the documents and frames that it keeps."""
    indexes = DocumentIndexes(store, toolbox.text, name)
    frames = FrameReader(store, toolbox, name)
    clocks = StreamClocks(store)
    inspection = Inspection(store, indexes, frames, clocks)
    search = Search(indexes, frames, inspection, clocks, toolbox.images)
    return {
        SEARCH: search,
        FRAMES: search.frames,
        INSPECT: inspection.inspect,
        SUMMARIZE: Summarize(store, indexes, clocks, name),
    }


# Summaries.


_LOG = logging.getLogger(f"homer.{__name__}")

MOST_WINDOWS = 24
"""Windows of one request."""
LINES = 8
"""Lines of a summary at most."""
MATERIAL = 400
"""Lines of events that a language model is shown of a window at most."""


class SummaryWindow(NamedTuple):
    """A window that is summarised: its number from the video's start, and its documents."""

    number: int
    span: TimeSpan
    documents: Sequence[EventDocument]

    @property
    def from_clip(self) -> int:
        return max(one.from_clip for one in self.documents)


class Summarize:
    """Summarises a span in windows. A summary holds from the clip on after which it was known.

    Args:
        clocks: the times of day of streams.
        builder: the name under which they are kept.
    """

    def __init__(
        self, store: Store, indexes: DocumentIndexes, clocks: StreamClocks, builder: str
    ) -> None:
        self._store, self._indexes, self._builder = store, indexes, builder
        self._clocks = clocks

    def __call__(self, view: MemoryView, arguments: SummarizeArguments, use: ToolUse) -> Retrieval:
        """Return the summaries in order of time.

        Raises:
            InputError: there are too many windows, or summaries are switched off.
        """
        if SUMMARIES in use.without:
            raise InputError("nothing is summarised: that part is switched off")
        # There are summaries of each structure, granularity and prompt.
        level = f"{SUMMARY} {arguments.structure} {arguments.granularity_s:g} s"
        if arguments.query:
            level = f"{level} {hashlib.sha256(arguments.query.encode()).hexdigest()[:12]}"
        evidence = list[Evidence]()
        for scope in view.scopes:
            documents = self._indexes.documents(scope)
            known = {one.number: one for one in documents if one.level == level}
            events = documents.those(lambda one: not one.level.startswith(SUMMARY))
            for window in _windows(events, arguments):
                summary = known.get(window.number)
                if summary is None or summary.from_clip < window.from_clip:
                    summary = self._write(scope, level, window, arguments, events, use.model)
                text = " ".join(summary.lines)
                evidence.append(
                    Evidence(
                        ref=summary.ref, video=scope.video, span=summary.span, text=text, score=0.5
                    )
                )
        with self._store.begin() as session:
            writers = build_writers(session, self._builder, view.videos)
        return Retrieval(
            mode="summarize",
            query=make_storable(arguments.query),
            evidence=self._clocks.named(evidence),
            nothing_close=not evidence,
            searched=f"{len(evidence)} summaries of windows of {arguments.granularity_s:g} s",
            writers=writers,
        )

    def _write(
        self,
        scope: Scope,
        level: str,
        window: SummaryWindow,
        arguments: SummarizeArguments,
        events: EventDocuments,
        model: AskModel | None,
    ) -> EventDocument:
        """Write a summary and keep it.

        Where a later one is kept already, or for who may change nothing, this one cannot be: then
        it is the best document.
        """
        best = max(window.documents, key=lambda one: len(one.lines))
        if not self._store.may_change:
            return best
        began = self._clocks.began([scope.video]).get(scope.video)
        with step_writers() as writers:
            lines = _written(window, arguments, events, model, began)
        vector = mean_direction(self._indexes.text.embed(lines))
        text, clip = BREAK.join(lines), window.from_clip
        draft = Node(level, window.number, text, window.span, clip, vector=vector)
        with self._store.begin() as session:
            lock_video(session, scope.video)
            built = read_built(session, scope.video, self._builder)
            later = [n for n in built.nodes if (n.level, n.number) == (level, window.number)]
            if any(node.from_clip >= clip for node in later):
                return best
            made = StepMade(built.through_clip, built.version, built.encoder, tuple(writers))
            apply_change(session, scope.video, self._builder, made, Change(nodes=[draft]))
            built = read_built(session, scope.video, self._builder)
        node = next(n for n in built.nodes if n.level == level and n.from_clip == clip)
        return EventDocument(
            level, window.number, text, window.span, clip, vector=vector, id=node.id
        )


def _windows(events: EventDocuments, arguments: SummarizeArguments) -> Iterator[SummaryWindow]:
    """Yield the windows of a span that have documents.

    Raises:
        InputError: there are too many.
    """
    length = max(1, round(arguments.granularity_s * 1_000))
    start = round((arguments.start_s or 0) * 1_000)
    end = events.end_ms if arguments.end_s is None else round(arguments.end_s * 1_000)
    end = min(end, events.end_ms)
    numbers = range(start // length, -(-end // length))
    if len(numbers) > MOST_WINDOWS:
        raise InputError(
            f"that are {len(numbers)} windows, at most {MOST_WINDOWS} are summarised at a time: "
            "name a coarser granularity_s or a shorter span"
        )
    for number in numbers:
        whole = TimeSpan.of(number * length, (number + 1) * length)
        inside = [one for one in events if one.span.overlap_ms(whole)]
        if inside:
            inside.sort(key=lambda one: one.span.start_ms)
            yield SummaryWindow(number, TimeSpan.of(whole.start_ms, min(whole.end_ms, end)), inside)


def _written(
    window: SummaryWindow,
    arguments: SummarizeArguments,
    events: EventDocuments,
    model: AskModel | None,
    began: datetime | None,
) -> list[str]:
    """Return the lines of a summary: the model's, else those that cover most of the rare words."""
    lines = list(dict.fromkeys(line for one in window.documents for line in one.lines))
    if model is None:
        note_writer(RULES)
        return covering(lines, window.documents, events)
    shown = lines if len(lines) <= MATERIAL else covering(lines, window.documents, events, MATERIAL)
    rules = prompt("summary_system", lines=LINES)
    wish = sanitise(arguments.query or "What happened?")
    page = prompt(
        "summary", lines=shown_lines(shown), prompt=wish, **clock_times(window.span, began)
    )
    try:
        return write_lines(model, "summarize", rules, page, shown)
    except (Unreadable, BudgetExceeded):
        note_rules(_LOG, "the summary of %s is by rules: no reply could be read", window.span)
        return covering(lines, window.documents, events)


def covering(
    lines: Sequence[str],
    documents: Sequence[EventDocument],
    events: EventDocuments,
    most: int = LINES,
) -> list[str]:
    """Return the lines that cover most of the rare words, in their order.

    The next line is always the one that adds most.
    """
    terms = {
        line: found
        for one in documents
        for line, found in zip(one.lines, one.line_terms, strict=True)
    }
    rarity = events.rarities(" ".join(lines))
    left = list(lines)
    chosen: list[str] = []
    covered: set[str] = set()
    while left and len(chosen) < most:
        best = max(left, key=lambda line: sum(rarity.get(t, 0.0) for t in terms[line] - covered))
        left.remove(best)
        chosen.append(best)
        covered |= terms[best]
    return [line for line in lines if line in set(chosen)]
