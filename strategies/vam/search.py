"""VAM's search: frames, events and summaries, within times that may be anchored to events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agent.strategy import ToolUse
from domain.errors import InputError, NotFound
from domain.memories import MemoryView, Scope
from domain.moments import Retrieval
from domain.time import TimeSpan
from domain.words import make_storable
from models.ports import embed_queries
from retrieval.keyframe_mode import image_evidence
from strategies.asked import documents_found
from strategies.event_documents import EventDocument, EventDocuments, FoundDocument
from strategies.kept_frames import KeptFrame, ScoredFrame, spread_frames
from strategies.vam import settings
from strategies.vam.times import (
    NO_CLOCK,
    AnchorMatch,
    ClockRange,
    EventAnchor,
    anchor_matches,
    clock_words,
    resolve,
)

if TYPE_CHECKING:
    from datetime import datetime

    from models.ports import ImageEncoder
    from strategies.event_documents import DocumentIndexes
    from strategies.kept_frames import FrameReader
    from strategies.vam.times import StreamClocks
    from strategies.vam.tools import Inspection

SHOWN = 10
"""Results of a search with a question alone."""
LOOKED_AT = 4
"""Frames of an event that an inspection of results looks at."""
MOST_WITHIN = 2_000
"""Frames that are looked through where a time is named."""


@dataclass
class Results:
    """What a search collects: the best score of each document and frame, and what it says."""

    documents: dict[str, FoundDocument] = field(default_factory=dict)
    frames: dict[str, ScoredFrame] = field(default_factory=dict)
    inspected: dict[str, list[KeptFrame]] = field(default_factory=dict)
    searched: dict[str, None] = field(default_factory=dict)

    def add_document(self, found: FoundDocument) -> None:
        """Add a document, or raise its score."""
        known = self.documents.get(found.document.ref)
        if known is None or known.score < found.score:
            self.documents[found.document.ref] = found


class Search:
    """Finds frames, events and summaries.

    Args:
        inspection: looks at frames.
        clocks: the times of day of streams.
        images: the profile's image-text model; None: frames are not found by text.
    """

    def __init__(
        self,
        indexes: DocumentIndexes,
        frames: FrameReader,
        inspection: Inspection,
        clocks: StreamClocks,
        images: ImageEncoder | None,
    ) -> None:
        self._indexes, self._frames = indexes, frames
        self._inspection, self._clocks, self._images = inspection, clocks, images

    def __call__(
        self, view: MemoryView, arguments: settings.SearchArguments, use: ToolUse
    ) -> Retrieval:
        """Return what is found, best first, scored by option if there are any.

        Raises:
            InputError: nothing was built of a video, an anchor has no such occurrence, or a time
                of day is asked for that is known of no video.
            NotFound: ``visual_ref`` is no frame in view.
        """
        results, inside = Results(), dict[str, TimeSpan]()
        all_documents: list[EventDocuments] = []
        began = self._clocks.began(view.videos)
        # For a time of day, only the videos of which it is known are searched.
        scopes = list(view.scopes)
        if isinstance(arguments.times, ClockRange):
            scopes = [scope for scope in scopes if scope.video in began]
            if not scopes:
                raise InputError(NO_CLOCK)
        for scope in scopes:
            documents = self._indexes.documents(scope)
            clock = began.get(scope.video)
            span = self._span(arguments, view, scope, documents, use, results, clock)
            if span is not None:
                inside[scope.video] = span
            documents = _within(documents, span, arguments.sources, use)
            all_documents.append(documents)
            for query in arguments.all_queries():
                text = make_storable(query.q)
                (vector,) = embed_queries(self._indexes.text, [text])
                most = SHOWN if query.threshold == 0 and (not arguments.queries) else query.top_k
                found = documents.matches(text, vector, query.threshold, most)
                for number, (document, score) in enumerate(found):
                    results.add_document(FoundDocument(scope, document, score))
                    if number < query.inspect_k:
                        results.inspected[document.ref] = spread_frames(
                            self._frames.within(scope, document.span), LOOKED_AT
                        )
            for option in arguments.options:
                claim = make_storable(f"{arguments.query} {option}")
                (vector,) = embed_queries(self._indexes.text, [claim])
                for document, score in documents.matches(claim, vector, 0.0, 1):
                    results.add_document(FoundDocument(scope, document, score))
            if not (arguments.all_queries() or arguments.visual_ref):
                in_order = sorted(documents, key=lambda one: one.span.start_ms)
                for document in in_order[:SHOWN]:
                    results.add_document(FoundDocument(scope, document, 0.5))
        self._by_text(results, view, arguments, inside)
        self._by_example(results, view, arguments, inside)
        return self._retrieval(view, arguments, results, all_documents, use)

    def frames(
        self, view: MemoryView, arguments: settings.FrameArguments, use: ToolUse
    ) -> Retrieval:
        """Return the frames nearest to a text.

        Raises:
            InputError: the profile has no image-text model.
        """
        query = settings.SearchQuery(q=arguments.query, top_k=arguments.top_k, threshold=0.0)
        made = self(
            view, settings.SearchArguments(queries=(query,), sources=(settings.Source.FRAME,)), use
        )
        if not made.images:
            raise InputError(made.searched)
        return made.model_copy(update={"mode": "frames"})

    def _span(
        self,
        arguments: settings.SearchArguments,
        view: MemoryView,
        scope: Scope,
        documents: EventDocuments,
        use: ToolUse,
        results: Results,
        began: datetime | None,
    ) -> TimeSpan | None:
        times = arguments.times
        if times is None:
            results.searched["all times"] = None
            return None

        def find(anchor: EventAnchor) -> Sequence[AnchorMatch]:
            return self._anchored(anchor, scope, documents, use, results)

        now = documents.end_ms if view.as_of_ms is None else view.as_of_ms
        span = resolve(times, now, find, began)
        shown = f"{span} ({clock_words(began, span)})" if began else str(span)
        results.searched[shown] = None
        return span

    def _anchored(
        self,
        anchor: EventAnchor,
        scope: Scope,
        documents: EventDocuments,
        use: ToolUse,
        results: Results,
    ) -> list[AnchorMatch]:
        """Return the events that match an anchor; where its frames can be judged, only those."""
        events = documents.those(lambda one: not one.level.startswith(settings.SUMMARY))
        query = make_storable(anchor.q)
        (vector,) = embed_queries(self._indexes.text, [query])
        found = anchor_matches(events, query, vector, anchor.threshold, anchor.top_k)
        if not (anchor.verify and anchor.inspect_k):
            return found
        if use.model is None or not use.model.sees:
            results.searched["anchors not verified: no model looks at frames here"] = None
            return found
        judged = found[: anchor.inspect_k]
        shown = [
            match
            for match in judged
            if self._inspection.shows(
                spread_frames(self._frames.within(scope, match.span), LOOKED_AT),
                anchor.verify,
                use.model,
            )
        ]
        return shown + found[anchor.inspect_k :]

    def _by_text(
        self,
        results: Results,
        view: MemoryView,
        arguments: settings.SearchArguments,
        inside: dict[str, TimeSpan],
    ) -> None:
        """Find frames by what they show, with the image-text model."""
        if arguments.sources and settings.Source.FRAME not in arguments.sources:
            return
        if self._images is None:
            results.searched["frames not by text: this profile has no image-text model"] = None
            return
        for query in arguments.all_queries():
            most = query.top_k if not inside else MOST_WITHIN
            found = self._frames.nearest(view, make_storable(query.q), most)
            for one in _in_spans(found, inside)[: query.top_k]:
                score = one.score / self._images.close / 2
                if score >= min(query.threshold, 0.5):
                    self._add_frame(results, one._replace(score=score), query)

    def _by_example(
        self,
        results: Results,
        view: MemoryView,
        arguments: settings.SearchArguments,
        inside: dict[str, TimeSpan],
    ) -> None:
        """Find frames that look like a result."""
        if arguments.visual_ref is None:
            return
        # The frame that is meant: the middle one of a document.
        ref = arguments.visual_ref
        example = self._frames.named(view, ref) or next(
            (
                frames[len(frames) // 2]
                for scope in view.scopes
                for document in self._indexes.documents(scope)
                if document.ref == ref and (frames := self._frames.within(scope, document.span))
            ),
            None,
        )
        if example is None:
            raise NotFound(f"no frame that is kept in these videos belongs to {ref}")
        query = arguments.queries[0] if arguments.queries else settings.SearchQuery(q="alike")
        most = query.top_k if not inside else MOST_WITHIN
        for one in _in_spans(self._frames.alike(view, example, most), inside)[: query.top_k]:
            self._add_frame(results, one, query)
        results.searched[f"frames that look like {example.ref}"] = None

    def _add_frame(self, results: Results, found: ScoredFrame, query: settings.SearchQuery) -> None:
        if len(results.inspected) < query.inspect_k:
            results.inspected[found.frame.ref] = [found.frame]
        known = results.frames.get(found.frame.ref)
        if known is None or known.score < found.score:
            results.frames[found.frame.ref] = found

    def _retrieval(
        self,
        view: MemoryView,
        arguments: settings.SearchArguments,
        results: Results,
        documents: Sequence[EventDocuments],
        use: ToolUse,
    ) -> Retrieval:
        found = [one for one in results.documents.values() if one.document.ref not in use.seen]
        found.sort(key=lambda one: -one.score)
        frames = sorted(results.frames.values(), key=lambda one: -one.score)
        fresh = [one for one in frames if one.frame.ref not in use.seen]
        looked = [one for frames in results.inspected.values() for one in frames][
            : settings.MOST_INSPECTED
        ]
        question = arguments.question or arguments.query
        seen, readings = self._inspection.look(looked, question, use.model, joint=arguments.joint)
        # The frames that are shown: those found, and those looked at.
        scores = {one.frame.ref: one for one in fresh}
        for frame in looked:
            if frame.ref not in use.seen:
                scores.setdefault(frame.ref, ScoredFrame(frame, 0.5))
        ranked = sorted(scores.values(), key=lambda one: -one.score)
        images = self._frames.show(
            [one.frame for one in ranked], [one.score for one in ranked], readings
        )
        query = make_storable(arguments.query or " / ".join(q.q for q in arguments.queries))
        shown = (
            one.model_copy(update={"seen": seen.get(one.ref, "")})
            for one in map(image_evidence, images)
        )
        pieces = self._clocks.named([*(one.piece for one in found), *shown])
        return documents_found(
            self._indexes,
            "search",
            query,
            arguments.options,
            view,
            use,
            documents,
            found,
            sorted(pieces, key=lambda piece: -piece.score),
            images,
            "; ".join(results.searched),
        )


def _within(
    documents: EventDocuments,
    span: TimeSpan | None,
    sources: Sequence[settings.Source],
    use: ToolUse,
) -> EventDocuments:
    wanted = set(sources) or {settings.Source.EVENT, settings.Source.SUMMARY}
    if settings.SUMMARIES in use.without:
        wanted.discard(settings.Source.SUMMARY)

    def keep(one: EventDocument) -> bool:
        source = (
            settings.Source.SUMMARY
            if one.level.startswith(settings.SUMMARY)
            else settings.Source.EVENT
        )
        return source in wanted and (span is None or one.span.overlap_ms(span) > 0)

    return documents.those(keep)


def _in_spans(found: Sequence[ScoredFrame], inside: dict[str, TimeSpan]) -> list[ScoredFrame]:
    if not inside:
        return list(found)
    return [
        one
        for one in found
        if (span := inside.get(one.frame.scope.video)) is not None
        and span.start_ms <= one.frame.frame.time_ms < span.end_ms
    ]
