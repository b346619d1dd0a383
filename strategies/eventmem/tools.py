"""EventMemAgent's tools: both memories, and what is read and detected on a kept frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent.strategy import ToolUse
from domain.errors import InputError, NotFound
from domain.memories import MemoryView
from domain.moments import Retrieval
from domain.time import TimeSpan, format_clock
from domain.words import make_storable
from models.ports import embed_queries
from retrieval.keyframe_mode import image_evidence
from strategies.asked import documents_found
from strategies.event_documents import EVENT, OPEN, DocumentIndexes, EventDocuments, FoundDocument
from strategies.eventmem.event_memory import Recall
from strategies.eventmem.strategy import DETECT, OCR, SEARCH, SHORT
from strategies.kept_frames import TEXT, FrameReader, KeptFrame, counted

if TYPE_CHECKING:
    from agent.strategy import RunTool
    from models.toolbox import Toolbox
    from store.database import Store
    from strategies.eventmem.settings import (
        DetectArguments,
        EventMemorySettings,
        ReadingArguments,
        SearchMemoryArguments,
        ShortTermArguments,
    )

READ, SHOWN = 0.6, 0.2
"""Scores of frames on which something was read or detected, and of others."""
LISTED = 10
"""Events of a stretch of time that are returned at most."""
MOST_FRAMES = 4
"""Frames of an event that are read at a time."""


class EventTools:
    """The four tools, which share both memories.

    Args:
        toolbox: has the text encoder that the memory was built with, and what reads frames.
        name: the strategy's, under which the memory is stored.
    """

    def __init__(
        self, store: Store, toolbox: Toolbox, name: str, settings: EventMemorySettings
    ) -> None:
        self._toolbox, self._settings = toolbox, settings
        self._indexes = DocumentIndexes(store, toolbox.text, name)
        self._frames = FrameReader(store, toolbox, name)
        self._recall = Recall(store, self._frames, settings, name)

    def by_name(self) -> dict[str, RunTool]:
        return {
            SHORT: self.short_term,
            SEARCH: self.search_memory,
            OCR: self.ocr,
            DETECT: self.detect_objects,
        }

    def short_term(
        self, view: MemoryView, arguments: ShortTermArguments, use: ToolUse
    ) -> Retrieval:
        """Return the frames in order of time, each with its number, and what came meanwhile."""
        query = make_storable(arguments.query)
        found: list[FoundDocument] = []
        searched: list[str] = []
        documents: list[EventDocuments] = []
        memories = self._recall.each(view)
        for memory in memories:
            every, recent = self._indexes.documents(memory.scope), memory.span
            documents.append(every)
            count, gone = len(memory.frames), len(memory.frames) - len(memory.kept)
            if not count:
                described = "the short-term memory has no frames: none were kept while watching"
            else:
                since = format_clock(memory.frames[0][0])
                described = (
                    f"the short-term memory: {count} frames of {len(memory.events)} events since "
                    f"{since}"
                ) + (f", {gone} of which are not kept any more" if gone else "")
            searched.append(described)
            if not query:
                scores = [SHOWN for _ in every]
            else:
                (vector,) = embed_queries(self._indexes.text, [query])
                scores = [float(score) for score in every.scores(query, vector)]
            found += [
                FoundDocument(memory.scope, one, score)
                for one, score in zip(every, scores, strict=True)
                if one.ref not in use.seen
                # What came since, or is of the time of the short-term memory.
                and (one.level == OPEN or (recent is not None and one.span.overlap_ms(recent) > 0))
            ]
        numbered = [one for memory in memories for one in memory.kept]
        images = self._frames.show(
            [frame for _, frame in numbered],
            [SHOWN] * len(numbered),
            {frame.ref: f"frame {number}" for number, frame in numbered},
        )
        fresh = tuple(one for one in images if one.ref not in use.seen)
        found.sort(key=lambda one: -one.score)
        return documents_found(
            self._indexes,
            "short_term",
            query,
            arguments.options,
            view,
            use,
            documents,
            found,
            [*(one.piece for one in found), *map(image_evidence, fresh)],
            fresh,
            "; ".join(searched),
        )

    def search_memory(
        self, view: MemoryView, arguments: SearchMemoryArguments, use: ToolUse
    ) -> Retrieval:
        """Return the events that a query matches best, or those of a stretch of time."""
        query = make_storable(arguments.query)
        found: dict[str, FoundDocument] = {}
        documents = [
            self._indexes.documents(scope).those(lambda one: one.level == EVENT)
            for scope in view.scopes
        ]
        for scope, every in zip(view.scopes, documents, strict=True):
            within, threshold, most = self._wanted(every, arguments)
            queries = [query, *(f"{query} {make_storable(o)}" for o in arguments.options)]
            for number, text in enumerate(queries):
                (vector,) = embed_queries(self._indexes.text, [text or "what happens"])
                for one, score in within.matches(text, vector, threshold, 1 if number else most):
                    known = found.get(one.ref)
                    if known is None or known.score < score:
                        found[one.ref] = FoundDocument(scope, one, score)
        fresh = [one for one in found.values() if one.document.ref not in use.seen]
        fresh.sort(key=lambda one: -one.score)
        best = fresh[: LISTED + len(arguments.options)]
        if arguments.start_s is None or arguments.end_s is None:
            said = f"the {self._settings.found} events of the long-term memory that match best"
        else:
            said = f"the events from {arguments.start_s:g} s to {arguments.end_s:g} s"
        made = documents_found(
            self._indexes,
            "search_memory",
            query,
            arguments.options,
            view,
            use,
            documents,
            best,
            [one.piece for one in best],
            (),
            said,
        )
        if arguments.start_s is None:
            return made
        # What was at a named time answers what was then, whatever its words are.
        return made.model_copy(update={"nothing_close": not best})

    def _wanted(
        self, documents: EventDocuments, arguments: SearchMemoryArguments
    ) -> tuple[EventDocuments, float, int]:
        """Return the documents that are searched, the least score, and how many are returned."""
        if arguments.start_s is None or arguments.end_s is None:
            return documents, self._settings.threshold, self._settings.found
        span = TimeSpan.of(round(arguments.start_s * 1_000), round(arguments.end_s * 1_000))
        return documents.those(lambda one: one.span.overlap_ms(span) > 0), 0.0, LISTED

    def _named(self, view: MemoryView, arguments: ReadingArguments) -> list[KeptFrame]:
        """Return the frames that are meant.

        Raises:
            NotFound: there are none; the message says what there is.
        """
        if arguments.frame_index is not None:
            memories, number = self._recall.each(view), arguments.frame_index
            known = [kept for memory in memories for n, kept in memory.kept if n == number]
            if not known:
                counts = ", ".join(str(len(memory.frames)) for memory in memories)
                raise NotFound(
                    f"the short-term memory has {counts} frames: frame {number} is not kept"
                )
            return known
        if arguments.ref is not None and (frame := self._frames.named(view, arguments.ref)):
            return [frame]
        for scope in view.scopes:
            for one in self._indexes.documents(scope):
                is_event = one.level == EVENT and one.number == arguments.event_id
                if one.ref == arguments.ref or is_event:
                    found = self._frames.within(scope, one.span)
                    if found:
                        return found[:MOST_FRAMES]
        name = arguments.ref or f"event {arguments.event_id}"
        raise NotFound(f"no frame that is kept in these videos belongs to {name}")

    def _shown(
        self, name: str, query: str, frames: Sequence[KeptFrame], seen: dict[str, str], said: str
    ) -> Retrieval:
        scores = [READ if seen.get(one.ref) else SHOWN for one in frames]
        images = self._frames.show(frames, scores, seen)
        return Retrieval(
            mode=name,
            query=query,
            evidence=tuple(map(image_evidence, images)),
            images=images,
            nothing_close=not any(seen.values()),
            searched=said,
        )

    def ocr(
        self,
        view: MemoryView,
        arguments: ReadingArguments,
        use: ToolUse,  # noqa: ARG002 - a frame that was shown may be read
    ) -> Retrieval:
        """Return the frames with their text.

        Raises:
            NotFound: there is no such frame.
        """
        frames = self._named(view, arguments)
        texts = {one.ref: text for one in frames if (text := self._frames.read(one))}
        seen = {ref: TEXT + text for ref, text in texts.items()}
        said = f"text on {len(frames)} frames" if seen else f"no text is on {len(frames)} frames"
        return self._shown("ocr", make_storable(arguments.query), frames, seen, said)

    def detect_objects(
        self,
        view: MemoryView,
        arguments: DetectArguments,
        use: ToolUse,  # noqa: ARG002 - a frame that was shown may be looked at
    ) -> Retrieval:
        """Return the frames with the things of these labels.

        Raises:
            NotFound: there is no such frame.
            InputError: the profile has no detector.
        """
        detector = self._toolbox.objects
        if detector is None:
            raise InputError("this profile has no detector of things")
        labels = [label.lower() for label in arguments.labels]
        known = [label for label in labels if label in detector.labels]
        unknown = [label for label in labels if label not in known]
        query = make_storable(arguments.query or ", ".join(labels))
        said = f"not among what I can detect: {', '.join(unknown)}" if unknown else ""
        if not known:
            return self._shown("detect_objects", query, [], {}, said)
        frames = self._named(view, arguments)
        seen = {one.ref: counted(self._frames.things(one, known)) for one in frames}
        looked = f"{', '.join(known)} on {len(frames)} frames"
        return self._shown(
            "detect_objects", query, frames, seen, "; ".join(p for p in (looked, said) if p)
        )
