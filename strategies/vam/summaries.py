"""VAM's summaries: documents of windows of any length, made on request, kept and searched."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from agent.builder import note_rules, note_writer, step_writers
from agent.reasoners.port import Unreadable
from agent.strategy import ToolUse
from domain.asking import Evidence
from domain.built import RULES, Change, Node
from domain.errors import BudgetExceeded, InputError
from domain.memories import MemoryView, Scope
from domain.moments import Retrieval
from domain.time import TimeSpan
from domain.words import make_storable
from models.messages import prompts_beside, sanitise
from store.queries.builds import StepMade, apply_change, build_writers, read_built
from store.queries.percepts import lock_video
from strategies.event_documents import BREAK, EventDocument, EventDocuments, mean_direction
from strategies.vam.model_writer import clock_times, shown_lines, write_lines
from strategies.vam.settings import SUMMARIES, SUMMARY

if TYPE_CHECKING:
    from datetime import datetime

    from agent.builder import AskModel
    from store.database import Store
    from strategies.event_documents import DocumentIndexes
    from strategies.vam.settings import SummarizeArguments
    from strategies.vam.times import StreamClocks

prompt = prompts_beside(__file__)

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
