"""Documents of events: what was said, read and seen in each, and how well they match a query."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from domain.asking import Evidence
from domain.built import BuiltMemory, StoredNode
from domain.memories import MemoryKind, Scope, with_attribution
from domain.time import TimeSpan
from models.ports import TextEmbedder
from retrieval.built_views import BuiltIndexes, check_built, holds
from retrieval.people_in_query import view_people, with_current_names
from retrieval.relevance import CosineScale, closeness, cosine_scale
from retrieval.terms import terms
from store.database import Store
from store.queries.characters import people_as_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from agent.builder import Embed
    from domain.built import WatchedClip
    from models.ports import Vector

    Scores = NDArray[np.float64]

BREAK = "\n"
"""Between the lines of a document."""
EVENT, OPEN = "event", "open"
"""The levels of documents: of events, by number, and of what came since, one that is rewritten."""


@dataclass(frozen=True, eq=False)
class EventDocument:
    """A document of an event, or a summary; ``vector`` is the mean direction of its lines' vectors.

    ``id`` is that of its node, ``level`` that of its kind of documents; it is as of ``from_clip``.
    """

    number: int
    span: TimeSpan
    text: str
    vector: Vector
    id: int = 0
    level: str = EVENT
    from_clip: int = 0

    @property
    def ref(self) -> str:
        """Return what cites it."""
        return f"n{self.id}"

    @property
    def lines(self) -> list[str]:
        """Return its lines."""
        return self.text.split(BREAK)

    @cached_property
    def terms(self) -> list[str]:
        """Return its terms."""
        return terms(self.text)

    @cached_property
    def line_terms(self) -> list[frozenset[str]]:
        """Return the terms of each line."""
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
        """Return some of the documents."""
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
        """Return the terms of a text with how rare each is."""
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
        """Return it as evidence."""
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


class LineVectors:
    """The vectors of lines, each made once as long as the document that it is of is open.

    Args:
        embed: returns the unit vector of each text, (N, D).
    """

    def __init__(self, embed: Embed) -> None:
        self._embed = embed
        self._vectors: dict[str, Vector] = {}

    def mean(self, lines: Sequence[str]) -> Vector | None:
        """Return the unit vector of the mean of some lines; None without any."""
        new = [line for line in dict.fromkeys(lines) if line not in self._vectors]
        if new:
            self._vectors |= dict(zip(new, self._embed(new), strict=True))
        return mean_direction(np.stack([self._vectors[one] for one in lines])) if lines else None

    def keep(self, lines: Sequence[str]) -> None:
        """Drop the vectors of all other lines."""
        self._vectors = {line: self._vectors[line] for line in lines if line in self._vectors}


# Documents of events of a video, read once and shared by the questions that follow.


class VideoDocuments:
    """The documents of a video."""

    def __init__(self, built: BuiltMemory) -> None:
        self.encoder = built.encoder
        last = max((node.number for node in built.nodes if node.level == EVENT), default=-1) + 1
        nodes = [node for node in built.nodes if node.vector is not None]
        self.named = lru_cache(maxsize=1)(
            lambda names: [(node, _document(node, dict(names), last)) for node in nodes]
        )
        """Return all revisions, each with its document, where people have these sorted names."""


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
        """Return the scale of the model's cosines."""
        return cosine_scale(self.text)

    def documents(self, scope: Scope) -> EventDocuments:
        """Return the documents that a question may see, with people by their current names.

        Raises:
            InputError: nothing was built, or with another text encoder.
        """
        built = self._indexes.of(scope.video)
        check_built(scope.video, built.encoder, self.text.name)
        with self._store.begin() as session:
            people = people_as_of(session, scope)
        names = view_people({scope.video: people}).names(scope.video)
        revisions = built.named(tuple(sorted(names.items())))
        known = [document for node, document in revisions if holds(node, scope.last_clip)]
        return EventDocuments(known, self.scale)


def _document(node: StoredNode, names: dict[str, str], last: int) -> EventDocument:
    if node.vector is None:
        raise ValueError("a document without text is not searched")
    return EventDocument(
        number=last if node.level == OPEN else node.number,
        span=node.span,
        text=with_current_names(node.text, names),
        vector=node.vector,
        id=node.id,
        level=node.level,
        from_clip=node.from_clip,
    )
