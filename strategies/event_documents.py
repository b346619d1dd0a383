"""Documents of events: what was said, read and seen in each, and how well they match a query."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from agent.builder import note_writer
from domain.asking import Evidence
from domain.built import RULES, BuiltMemory, Change, Node
from domain.memories import MemoryKind, Scope, with_attribution
from domain.time import TimeSpan
from models.ports import TextEmbedder
from retrieval.built_views import BuiltIndexes, check_built, holds
from retrieval.people_in_query import names_as_of, with_current_names
from retrieval.relevance import CosineScale, closeness, cosine_scale
from retrieval.terms import terms
from store.database import Store

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from agent.builder import BuildModels
    from domain.built import BuiltFrame, WatchedClip
    from domain.media import Video
    from models.ports import Vector

    Scores = NDArray[np.float64]

BREAK = "\n"
"""Between the lines of a document."""
EVENT, OPEN = "event", "open"
"""The levels of documents: of events, by number, and of what came since, one that is rewritten."""


@dataclass(frozen=True, eq=False, kw_only=True)
class EventDocument(Node):
    """A document of an event, or a summary; ``vector`` is the mean direction of its lines' vectors.

    ``level`` is that of its kind of documents.
    """

    vector: Vector

    @property
    def lines(self) -> list[str]:
        return self.text.split(BREAK)

    @cached_property
    def terms(self) -> list[str]:
        return terms(self.text)

    @cached_property
    def line_terms(self) -> list[frozenset[str]]:
        return [frozenset(terms(line)) for line in self.lines]

    def best_lines(self, words: Collection[str], most: int) -> list[str]:
        """Return the lines that have most of these terms, in their order."""
        found = [len(line & set(words)) for line in self.line_terms]
        order = sorted(range(len(found)), key=lambda number: -found[number])
        lines = self.lines
        return [lines[number] for number in sorted(order[:most])]


class EventDocuments:
    """The documents of a video, which are searched by words and vectors.

    Args:
        documents: the documents, in any order.
        scale: of the cosines of their vectors.
    """

    def __init__(self, documents: Sequence[EventDocument], scale: CosineScale) -> None:
        self._documents, self._scale = documents, scale

    @cached_property
    def _counts(self) -> Counter[str]:
        """Return in how many documents each term is."""
        of_each = (frozenset().union(*one.line_terms) for one in self._documents)
        return Counter(term for found in of_each for term in found)

    @property
    def end_ms(self) -> int:
        """Return when the last document ends; 0 without any."""
        return max((one.span.end_ms for one in self._documents), default=0)

    def __iter__(self) -> Iterator[EventDocument]:
        return iter(self._documents)

    def those(self, keep: Callable[[EventDocument], bool]) -> EventDocuments:
        return EventDocuments([one for one in self._documents if keep(one)], self._scale)

    def scores(self, query: str, vector: Vector) -> Scores:
        """Return how well each document matches a query, in [0, 1], shape (N,).

        Words count by the line that has most of them, the rarer the more.

        Args:
            vector: of the query, of length 1.
        """
        weights = self.rarities(query)
        found = [
            closeness(
                self._scale.nearness(float(one.vector @ vector)),
                max(covered(line, weights) for line in one.line_terms),
            )
            for one in self._documents
        ]
        return np.asarray(found, np.float64)

    def rarities(self, text: str) -> dict[str, float]:
        return {
            term: math.log1p(len(self._documents) / max(1, self._counts[term]))
            for term in terms(text)
        }

    def matches(
        self, query: str, vector: Vector, threshold: float, most: int
    ) -> list[tuple[EventDocument, float]]:
        """Return the documents that reach a threshold, best first, each with its score."""
        scores = self.scores(query, vector)
        order = np.argsort(-scores, kind="stable")[:most].tolist()
        return [(self._documents[n], float(scores[n])) for n in order if scores[n] >= threshold]


@dataclass(frozen=True, eq=False)
class FoundDocument:
    """A document that was found in a video, with its score."""

    scope: Scope
    document: EventDocument
    score: float

    @property
    def piece(self) -> Evidence:
        one = self.document
        score = min(1.0, max(0.0, self.score))
        text = " ".join(one.lines)
        return Evidence(ref=one.ref, video=self.scope.video, span=one.span, text=text, score=score)


def clip_at(clips: Sequence[WatchedClip], time_ms: int) -> int:
    """Return the clip after which something of a time is known, the last one at the latest."""
    return next((one.clip for one in clips if one.span.end_ms >= time_ms), clips[-1].clip)


def covered(found: Collection[str], weights: Mapping[str, float]) -> float:
    """Return the share of terms that are found, by their weights, in [0, 1]."""
    total = sum(weights.values())
    return sum(weights[term] for term in weights if term in found) / total if total else 0.0


def document_lines(clips: Iterable[WatchedClip], span: TimeSpan) -> list[str]:
    """Return what was said, read and seen from a span's start on until its end, each line once."""
    lines = (line for clip in clips for line in clip.lines)
    within = [one for one in lines if span.start_ms <= one.span.start_ms < span.end_ms]
    within.sort(key=lambda one: (one.span.start_ms, one.span.end_ms, one.id))
    texts = (
        with_attribution(" ".join(one.text.split()), one.source, one.speaker)
        for one in within
        if one.kind is MemoryKind.EPISODIC
    )
    return list(dict.fromkeys(text for text in texts if text))


def mean_direction(vectors: NDArray[np.float32]) -> Vector:
    """Return the unit vector of the mean of some unit vectors, (N, D) with N above 0."""
    mean = vectors.mean(axis=0)
    return np.asarray(mean / max(float(np.linalg.norm(mean)), 1e-9), np.float32)


S = TypeVar("S")


class DocumentBuild(Generic[S]):
    """What builds of documents share: the clips of which not all events have their document.

    What came since the last event is one document that is written anew with every step. Events are
    the same of every video.

    Args:
        built: what was built before.
        earlier: the last clips that were built.
        models: the text encoder, and the language model if there is one.
    """

    def __init__(
        self,
        settings: S,
        _video: Video,
        built: BuiltMemory,
        earlier: Sequence[WatchedClip],
        models: BuildModels,
    ) -> None:
        self._settings, self._models, self._clips = settings, models, list(earlier)
        events = [node for node in built.nodes if node.level == EVENT]
        last = max(events, key=lambda node: node.number, default=None)
        self._last = last.span if last else None
        self._number = last.number + 1 if last else 0
        # Each line's vector is made once as long as the document that it is of is open.
        self._vectors: dict[str, Vector] = {}

    @property
    def _start(self) -> int:
        """When the last event that has a document ends."""
        return self._last.end_ms if self._last else 0

    def _frames(self) -> Iterator[BuiltFrame]:
        return (frame for clip in self._clips for frame in clip.frames)

    def _lines(self, span: TimeSpan | None) -> list[str]:
        return document_lines(self._clips, span) if span else []

    def _ended(
        self,
        is_first: Callable[[BuiltFrame], bool],
        longest_ms: int,
        known_ms: int,
        *,
        ended: bool,
    ) -> Iterator[TimeSpan]:
        """Yield the spans of the events that follow the last one and end by a time.

        Args:
            is_first: whether an event begins with a frame.
            longest_ms: longer events are written in parts.
            known_ms: through when it is known where events begin.
            ended: nothing follows, so that the last event ends then.
        """
        start = self._start
        begins = sorted(frame.time_ms for frame in self._frames() if is_first(frame))
        # The first event goes from the video's start on, whenever its first frame is shown.
        begins = begins if start else begins[1:]
        while start < known_ms:
            end = min([start + longest_ms, *(time for time in begins if time > start)])
            if end > known_ms and not ended:
                return
            span = TimeSpan.of(start, min(end, known_ms))
            start = span.end_ms
            yield span

    def _document(
        self, span: TimeSpan, clip: int, lines: Sequence[str], logs: Sequence[str] = ()
    ) -> Node:
        """Return the document of the next event, with change logs after its lines."""
        number, self._number = self._number, self._number + 1
        text = BREAK.join([*lines, *logs])
        return Node(EVENT, number, text, span, clip, vector=self._mean(lines))

    def _change(self, documents: Sequence[Node], clip: WatchedClip, keep_ms: int) -> Change:
        """Return what a step adds, with the document of what came since; forget what is over.

        Args:
            clip: the last one.
            keep_ms: clips that end by then are forgotten.
        """
        span = TimeSpan.of(self._start, max(self._start, clip.span.end_ms))
        if lines := self._lines(span):
            note_writer(RULES)
        since = Node(OPEN, 0, BREAK.join(lines), span, clip.clip, vector=self._mean(lines))
        self._clips = [one for one in self._clips if one.span.end_ms > keep_ms]
        self._vectors = {line: self._vectors[line] for line in lines}
        return Change(nodes=[*documents, since])

    def _mean(self, lines: Sequence[str]) -> Vector | None:
        new = [line for line in dict.fromkeys(lines) if line not in self._vectors]
        if new:
            self._vectors |= dict(zip(new, self._models.embed(new), strict=True))
        return mean_direction(np.stack([self._vectors[one] for one in lines])) if lines else None


# Documents of events of a video, read once and shared by the questions that follow.


class VideoDocuments:
    """The documents of a video."""

    def __init__(self, built: BuiltMemory) -> None:
        self.encoder = built.encoder
        last = max((node.number for node in built.nodes if node.level == EVENT), default=-1) + 1
        nodes = [node for node in built.nodes if node.vector is not None]
        self.named = lru_cache(maxsize=1)(
            lambda names: [_document(node, dict(names), last) for node in nodes]
        )
        """Return the documents of all revisions, where people have these sorted names."""


class DocumentIndexes:
    """The documents of the videos asked about last. Thread-safe.

    Args:
        text: the model that the memory was built with.
    """

    def __init__(self, store: Store, text: TextEmbedder, builder: str) -> None:
        self._store, self.text = store, text
        self._indexes = BuiltIndexes(store, builder, VideoDocuments)

    @cached_property
    def scale(self) -> CosineScale:
        return cosine_scale(self.text)

    def documents(self, scope: Scope) -> EventDocuments:
        """Return the documents that a question may see, with people by their current names.

        Raises:
            InputError: nothing was built, or with another text encoder.
        """
        built = self._indexes.of(scope.video)
        check_built(scope.video, built.encoder, self.text.name)
        with self._store.begin() as session:
            names = names_as_of(session, scope)
        revisions = built.named(tuple(sorted(names.items())))
        known = [document for document in revisions if holds(document, scope.last_clip)]
        return EventDocuments(known, self.scale)


def _document(node: Node, names: dict[str, str], last: int) -> EventDocument:
    if node.vector is None:
        raise ValueError("a document without text is not searched")
    return EventDocument(
        node.level,
        last if node.level == OPEN else node.number,
        with_current_names(node.text, names),
        node.span,
        node.from_clip,
        to_clip=node.to_clip,
        id=node.id,
        vector=node.vector,
    )
