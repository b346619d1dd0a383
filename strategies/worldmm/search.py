"""WorldMM's searches of its episodic and semantic memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from agent.strategy import ToolUse
from domain.asking import Evidence
from domain.memories import MemoryView, Scope
from domain.search import Extract, Weighed
from domain.stated import Triple
from models.ports import TextEmbedder
from people.corrected import people_as_of
from retrieval.asked import TEMPERATURE, Asked, AskedWords, Supporting, ask, best_by_option
from retrieval.built_indexes import check_built
from retrieval.closeness import CosineScale, closeness_threshold, cosine_scale
from retrieval.extracts import caption_sentences
from retrieval.people_in_query import view_people, with_current_names
from retrieval.result import Retrieval
from store.database import Store
from strategies.worldmm.arguments import MemoryArguments
from strategies.worldmm.choice import ScaleCandidate, choose_across_scales
from strategies.worldmm.episodic import nearest, search_scale
from strategies.worldmm.graph import Vectors
from strategies.worldmm.index import ScaleView, SemanticView, WorldIndexes
from strategies.worldmm.model_choice import KeptTriples, choose_captions, keep_triples
from strategies.worldmm.parts import GRAPH, SCALES
from strategies.worldmm.semantic_search import search_semantic
from strategies.worldmm.settings import WorldMemorySettings

QUOTED = 2
"""Sentences of a caption that an answer quotes at most."""

Texts = dict[str, str]
Scored = tuple[Supporting, float]
"""A caption, and its score among those of its scale."""


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
        for video in view.videos:
            check_built(video, self._indexes.of(video).encoder, self._text.name)
        asked = ask(self._text, arguments.query, arguments.options)
        found, reason = self._found(view, asked, use)
        fresh = [one for one in found if one.piece.ref not in use.seen]
        evidence = tuple(one.piece for one in fresh)
        best = max((piece.score for piece in evidence), default=0.0)
        # A language model judges itself what is close enough to answer from.
        close = bool(evidence) and use.model is not None
        return Retrieval(
            mode=self.name,
            query=asked.query,
            evidence=evidence,
            nothing_close=not close and best < closeness_threshold(max(1, len(evidence))),
            searched=reason,
            weighed=tuple(
                Weighed(ref=one.piece.ref, scores=one.support) for one in fresh if one.support
            ),
            temperature=TEMPERATURE,
            extract=None if asked.claims else self._extract(asked.vector, evidence),
        )

    def _found(
        self, view: MemoryView, asked: Asked, use: ToolUse
    ) -> tuple[Sequence[Supporting], str]:
        raise NotImplementedError

    @cached_property
    def _cosine_scale(self) -> CosineScale:
        return cosine_scale(self._text)

    def _nearness(self, vector: Vectors, other: Vectors) -> float:
        return self._cosine_scale.nearness(float(vector @ other))

    def _names(self, scope: Scope) -> Texts:
        with self._store.begin() as session:
            people = people_as_of(session, scope)
        return view_people({scope.video: people}).names(scope.video)

    def _extract(self, vector: Vectors, evidence: Sequence[Evidence]) -> Extract | None:
        """Quote the sentences nearest to the query from the piece that has the nearest."""
        best: Extract | None = None
        for piece in evidence:
            texts = caption_sentences(piece.text) or [piece.text]
            cosines = self._text.embed(texts) @ vector
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
    current ones by tag; ``matches`` is how captions match in words.
    """

    scope: Scope
    place: int
    view: ScaleView
    entities: Mapping[int, str]
    names: Texts
    matches: AskedWords

    def triple(self, number: int) -> Triple:
        """Return a triple as it is shown."""
        one = self.view.triples[number]
        return Triple(
            subject=with_current_names(self.entities[one.subject], self.names),
            predicate=one.predicate,
            object=with_current_names(self.entities[one.object], self.names),
        )


class EpisodicSearch(_Search):
    """Finds captions of all scales by their graphs, and keeps those that fit the question.

    Without a language model, the finest caption is kept besides that has most of the words of each
    option and of the question.
    """

    name = "episodic"

    def _found(
        self, view: MemoryView, asked: Asked, use: ToolUse
    ) -> tuple[Sequence[Supporting], str]:
        scales = [scale for scope in view.scopes for scale in self._scales(scope, asked, use)]
        if use.model is None:
            chosen, reason = self._by_rules(asked, self._by_scale(scales, asked, use))
            return self._with_options(chosen, scales, asked), reason
        if GRAPH in use.without:
            matched, kept = [], KeptTriples((), "entities and triples are switched off")
        else:
            matched = [scale.triple(n) for scale in scales for n in self._matched(scale, asked)]
            kept = keep_triples(use.model, asked.query, matched)
        by_scale = self._by_scale(scales, asked, use, frozenset(kept.triples))
        fresh = [[one for one in found if one[0].piece.ref not in use.seen] for found in by_scale]
        pieces = [one.piece for found in fresh for one, _ in found]
        taken = choose_captions(use.model, asked.query, pieces, self._settings.captions_kept)
        if isinstance(taken, str):
            chosen, reason = self._by_rules(asked, fresh)
            return chosen, f"{kept.reason}; {taken}; {reason}"
        known = {one.piece.ref: one for found in fresh for one, _ in found}
        return [known[one.ref] for one in taken.captions], f"{kept.reason}; {taken.reason}"

    def _by_rules(
        self, asked: Asked, by_scale: Sequence[Sequence[Scored]]
    ) -> tuple[list[Supporting], str]:
        pieces = {one.piece.ref: one for found in by_scale for one, _ in found}
        candidates = [
            [
                ScaleCandidate(
                    ref=one.piece.ref, scale=place, span=one.piece.span, score=max(0.0, score)
                )
                for one, score in found
            ]
            for place, found in enumerate(by_scale)
        ]
        chosen = choose_across_scales(asked.query, candidates, self._settings.captions_kept)
        return [pieces[one.ref] for one in chosen.chosen], chosen.reason

    def _with_options(
        self, chosen: Sequence[Supporting], scales: Sequence[_Scale], asked: Asked
    ) -> list[Supporting]:
        """Add the finest caption that matches each option best."""
        known = {one.piece.ref: one for one in chosen}
        found: list[tuple[int, float, str]] = []
        for scale in scales:
            for option, number, score in scale.matches.best_of_options() if not scale.place else ():
                one = self._supporting(scale, number, asked)
                known.setdefault(one.piece.ref, one)
                found.append((option, score, one.piece.ref))
        refs = [one.piece.ref for one in chosen] + best_by_option(found)
        return [known[ref] for ref in dict.fromkeys(refs)]

    def _scales(self, scope: Scope, asked: Asked, use: ToolUse) -> Iterator[_Scale]:
        index, names = self._indexes.of(scope.video), self._names(scope)
        levels = index.levels()[: len(self._settings.captions)]
        for place, level in enumerate(levels[:1] if SCALES in use.without else levels):
            view = index.scale(level, scope.last_clip)
            yield _Scale(scope, place, view, index.names, names, AskedWords(view.words, asked))

    def _matched(self, scale: _Scale, asked: Asked) -> Iterator[int]:
        """Yield the numbers of the triples nearest to a query."""
        cosines = scale.view.index.triple_vectors @ asked.vector
        return (one.number for one in nearest(cosines, self._settings.matched_triples))

    def _by_scale(
        self,
        scales: Sequence[_Scale],
        asked: Asked,
        use: ToolUse,
        kept: Collection[Triple] | None = None,
    ) -> list[list[Scored]]:
        """Return the captions found at each scale, finest first; ``kept`` triples lead there."""
        found: list[list[Scored]] = [[] for _ in self._settings.captions]
        for scale in scales:
            found[scale.place] += self._of_scale(scale, asked, use, kept)
        return found

    def _of_scale(
        self, scale: _Scale, asked: Asked, use: ToolUse, kept: Collection[Triple] | None
    ) -> Iterator[Scored]:
        """Yield the captions of a scale with their scores, best first.

        Those that a language model chooses among are found and compared as in the paper.
        """

        def keep(numbers: Sequence[int]) -> list[int]:
            return [n for n in numbers if kept is not None and scale.triple(n) in kept]

        found = search_scale(
            scale.view.index,
            asked.vector,
            self._settings.captions[scale.place],
            self._settings,
            None if kept is None else keep,
            words=scale.matches.words if use.model is None else None,
            graph=GRAPH not in use.without,
        )
        for one in found.captions:
            caption = self._supporting(scale, one.number, asked)
            yield caption, one.score if use.model is None else caption.piece.score

    def _supporting(self, scale: _Scale, number: int, asked: Asked) -> Supporting:
        """Return a caption with how far it supports each option."""
        node = scale.view.nodes[number]
        vector = scale.view.index.caption_vectors[number]
        piece = Evidence(
            ref=f"n{node.id}",
            video=scale.scope.video,
            span=node.span,
            text=with_current_names(node.text, scale.names),
            score=self._nearness(asked.vector, vector),
        )
        return Supporting(piece, asked.support(scale.matches.claims[:, number], vector))


class SemanticSearch(_Search):
    """Finds what lasts: habits, relations, attributes."""

    name = "semantic"

    def _found(
        self,
        view: MemoryView,
        asked: Asked,
        use: ToolUse,  # noqa: ARG002 - the policy does not use this tool where it is switched off
    ) -> tuple[list[Supporting], str]:
        found = [one for scope in view.scopes for one in self._of_video(scope, asked)]
        found.sort(key=lambda one: -one.piece.score)
        kept = found[: self._settings.semantic_triples]
        return kept, f"{len(kept)} of what recurs or lasts"

    def _of_video(self, scope: Scope, asked: Asked) -> Iterator[Supporting]:
        index, names = self._indexes.of(scope.video), self._names(scope)
        view: SemanticView = index.semantic(scope.last_clip)
        claims = [view.words.of(claim) for claim in asked.claims]
        for one in search_semantic(view.index, asked.vector, self._settings):
            relation, vector = view.relations[one.number], view.index.vectors[one.number]
            text, times = index.text_of(relation), len(relation.evidence)
            piece = Evidence(
                ref=f"r{relation.id}",
                video=scope.video,
                span=relation.span,
                text=with_current_names(f"{text} ({times} times)" if times > 1 else text, names),
                score=self._nearness(asked.vector, vector),
            )
            words = np.array([scores[one.number] for scores in claims])
            yield Supporting(piece, asked.support(words, vector))
