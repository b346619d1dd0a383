"""WorldMM's searches of its episodic and semantic memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np

from agent.strategy import ToolUse
from domain.asking import Evidence
from domain.errors import InputError
from domain.memories import MemoryView, Scope
from domain.search import Extract, Weighed
from domain.texts import make_storable
from models.ports import TextEmbedder, embed_queries
from people.corrected import people_as_of
from retrieval.closeness import CosineScale, closeness_threshold, cosine_scale
from retrieval.option_cosines import TEMPERATURE, weigh_by_cosines
from retrieval.people_in_query import view_people, with_current_names
from retrieval.result import Retrieval
from store.database import Store
from strategies.worldmm.arguments import MemoryArguments
from strategies.worldmm.captions import caption_sentences
from strategies.worldmm.choice import ScaleCandidate, choose_across_scales
from strategies.worldmm.clauses import Triple
from strategies.worldmm.episodic import nearest, search_scale
from strategies.worldmm.graph import Vectors
from strategies.worldmm.index import ScaleView, SemanticView, WorldIndexes
from strategies.worldmm.model_choice import choose_captions, keep_triples
from strategies.worldmm.semantic_search import search_semantic
from strategies.worldmm.settings import WorldMemorySettings

QUOTED = 2
"""Sentences of a caption that an answer quotes at most."""

Texts = dict[str, str]
Sentences = tuple[list[str], Vectors]
"""Sentences with their vectors, (S, D)."""


class _Search:
    """What both searches share.

    Args:
        store: the store.
        text: the model that the memory was built with.
        indexes: the memory of videos.
        settings: the numbers.
    """

    name = ""

    def __init__(
        self,
        store: Store,
        text: TextEmbedder,
        indexes: WorldIndexes,
        settings: WorldMemorySettings,
    ) -> None:
        self._store, self._text = store, text
        self._indexes, self._settings = indexes, settings

    def __call__(self, view: MemoryView, arguments: MemoryArguments, use: ToolUse) -> Retrieval:
        """Return what is found, best first, scored by option if there are any."""
        self._check_built(view)
        query = make_storable(arguments.query)
        vector = embed_queries(self._text, [query])[0]
        found, reason = self._found(view, query, vector, use)
        evidence = tuple(piece for piece in found if piece.ref not in use.seen)
        sentences = [self._sentences(piece) for piece in evidence]
        best = max((piece.score for piece in evidence), default=0.0)
        # A language model judges itself what is close enough to answer from.
        close = bool(evidence) and use.model is not None
        return Retrieval(
            mode=self.name,
            query=query,
            evidence=evidence,
            nothing_close=not close and best < closeness_threshold(max(1, len(evidence))),
            searched=reason,
            weighed=self._weigh(query, arguments.options, evidence, sentences),
            temperature=TEMPERATURE,
            extract=self._extract(vector, evidence, sentences),
        )

    def _found(
        self, view: MemoryView, query: str, vector: Vectors, use: ToolUse
    ) -> tuple[Sequence[Evidence], str]:
        raise NotImplementedError

    def _check_built(self, view: MemoryView) -> None:
        """Check that something was built of every video, with this text encoder.

        Raises:
            InputError: of one nothing was, or with another; the message says what to run.
        """
        for video in view.videos:
            index = self._indexes.of(video)
            if not index.levels():
                raise InputError(
                    f"nothing was built of {video} for this strategy yet: homer build {video}"
                )
            if index.encoder != self._text.name:
                raise InputError(
                    f"what was built of {video} has vectors of {index.encoder}, this profile "
                    f"searches with {self._text.name}: build it anew with homer build {video}"
                )

    @cached_property
    def _cosine_scale(self) -> CosineScale:
        return cosine_scale(self._text)

    def _nearness(self, vector: Vectors, other: Vectors) -> float:
        return self._cosine_scale.nearness(float(vector @ other))

    def _names(self, scope: Scope) -> Texts:
        with self._store.begin() as session:
            people = people_as_of(session, scope)
        return view_people({scope.video: people}).names(scope.video)

    def _weigh(
        self,
        question: str,
        options: Sequence[str],
        evidence: Sequence[Evidence],
        sentences: Sequence[Sentences],
    ) -> tuple[Weighed, ...]:
        """Score each piece by the best cosine of its sentences with question and option."""
        if not options or not evidence:
            return ()
        claims = [make_storable(f"{question} {option}") for option in options]
        vectors = [each for _, each in sentences]
        return weigh_by_cosines(evidence, vectors, embed_queries(self._text, claims))

    def _sentences(self, piece: Evidence) -> Sentences:
        """Return the sentences of a piece, and their vectors (S, D)."""
        sentences = caption_sentences(piece.text) or [piece.text]
        return sentences, self._text.embed(sentences)

    def _extract(
        self, vector: Vectors, evidence: Sequence[Evidence], sentences: Sequence[Sentences]
    ) -> Extract | None:
        """Quote the sentences nearest to the query from the piece that has the nearest."""
        best: Extract | None = None
        for piece, (texts, vectors) in zip(evidence, sentences, strict=True):
            cosines = vectors @ vector
            order = sorted(np.argsort(-cosines, kind="stable")[:QUOTED].tolist())
            score = self._cosine_scale.nearness(float(cosines.max()))
            if best is None or score > best.score:
                best = Extract(
                    text=" ".join(texts[n] for n in order),
                    refs=(piece.ref,),
                    video=piece.video,
                    span=piece.span,
                    score=score,
                )
        return best


@dataclass(frozen=True, eq=False)
class _Scale:
    """A scale of a video that is searched.

    ``place`` is 0 for the finest; ``entities`` are their names by row id, and ``names`` people's
    current ones by tag.
    """

    scope: Scope
    place: int
    view: ScaleView
    entities: Mapping[int, str]
    names: Texts

    def triple(self, number: int) -> Triple:
        """Return a triple as it is shown."""
        one = self.view.triples[number]
        return Triple(
            subject=with_current_names(self.entities[one.subject], self.names),
            predicate=one.predicate,
            object=with_current_names(self.entities[one.object], self.names),
        )


class EpisodicSearch(_Search):
    """Finds captions of all scales by their graphs, and keeps those that fit the question."""

    name = "episodic"

    def _found(
        self, view: MemoryView, query: str, vector: Vectors, use: ToolUse
    ) -> tuple[Sequence[Evidence], str]:
        scales = [scale for scope in view.scopes for scale in self._scales(scope)]
        if use.model is None:
            return self._by_rules(query, self._by_scale(scales, vector))
        matched = [scale.triple(n) for scale in scales for n in self._matched(scale, vector)]
        kept = keep_triples(use.model, query, matched)
        by_scale = self._by_scale(scales, vector, frozenset(kept.triples))
        fresh = [[piece for piece in found if piece.ref not in use.seen] for found in by_scale]
        most = self._settings.captions_kept
        chosen = choose_captions(use.model, query, list(chain.from_iterable(fresh)), most)
        if isinstance(chosen, str):
            pieces, reason = self._by_rules(query, fresh)
            return pieces, f"{kept.reason}; {chosen}; {reason}"
        return chosen.captions, f"{kept.reason}; {chosen.reason}"

    def _by_rules(
        self, query: str, by_scale: Sequence[Sequence[Evidence]]
    ) -> tuple[list[Evidence], str]:
        pieces = {piece.ref: piece for found in by_scale for piece in found}
        candidates = [
            [
                ScaleCandidate(ref=piece.ref, scale=place, span=piece.span, score=piece.score)
                for piece in found
            ]
            for place, found in enumerate(by_scale)
        ]
        chosen = choose_across_scales(query, candidates, self._settings.captions_kept)
        return [pieces[one.ref] for one in chosen.chosen], chosen.reason

    def _scales(self, scope: Scope) -> Iterator[_Scale]:
        index, names = self._indexes.of(scope.video), self._names(scope)
        for place, level in enumerate(index.levels()[: len(self._settings.captions)]):
            yield _Scale(scope, place, index.scale(level, scope.last_clip), index.names, names)

    def _matched(self, scale: _Scale, vector: Vectors) -> Iterator[int]:
        """Yield the numbers of the triples nearest to a query."""
        cosines = scale.view.index.triple_vectors @ vector
        return (one.number for one in nearest(cosines, self._settings.matched_triples))

    def _by_scale(
        self, scales: Sequence[_Scale], vector: Vectors, kept: Collection[Triple] | None = None
    ) -> list[list[Evidence]]:
        """Return the captions found at each scale, finest first; ``kept`` triples lead there."""
        found: list[list[Evidence]] = [[] for _ in self._settings.captions]
        for scale in scales:
            found[scale.place] += self._of_scale(scale, vector, kept)
        return found

    def _of_scale(
        self, scale: _Scale, vector: Vectors, kept: Collection[Triple] | None
    ) -> Iterator[Evidence]:
        """Yield the captions of a scale, best first."""

        def keep(numbers: Sequence[int]) -> list[int]:
            return [n for n in numbers if kept is not None and scale.triple(n) in kept]

        index, most = scale.view.index, self._settings.captions[scale.place]
        choosing = None if kept is None else keep
        for one in search_scale(index, vector, most, self._settings, choosing).captions:
            node = scale.view.nodes[one.number]
            yield Evidence(
                ref=f"n{node.id}",
                video=scale.scope.video,
                span=node.span,
                text=with_current_names(node.text, scale.names),
                score=self._nearness(vector, index.caption_vectors[one.number]),
            )


class SemanticSearch(_Search):
    """Finds what lasts: habits, relations, attributes."""

    name = "semantic"

    def _found(
        self,
        view: MemoryView,
        query: str,  # noqa: ARG002 - found by its vector alone
        vector: Vectors,
        use: ToolUse,  # noqa: ARG002 - the same with a model
    ) -> tuple[Sequence[Evidence], str]:
        pieces = [piece for scope in view.scopes for piece in self._of_video(scope, vector)]
        pieces.sort(key=lambda piece: -piece.score)
        kept = pieces[: self._settings.semantic_triples]
        return kept, f"{len(kept)} of what recurs or lasts"

    def _of_video(self, scope: Scope, vector: Vectors) -> Iterator[Evidence]:
        index, names = self._indexes.of(scope.video), self._names(scope)
        view: SemanticView = index.semantic(scope.last_clip)
        named = index.names
        for one in search_semantic(view.index, vector, self._settings):
            relation = view.relations[one.number]
            text = f"{named[relation.subject]} {relation.predicate} {named[relation.object]}"
            times = len(relation.evidence)
            yield Evidence(
                ref=f"r{relation.id}",
                video=scope.video,
                span=relation.span,
                text=with_current_names(f"{text} ({times} times)" if times > 1 else text, names),
                score=self._nearness(vector, view.index.vectors[one.number]),
            )
