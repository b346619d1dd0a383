"""Preparation of a search: the models it needs, people, query vectors, candidates and relevance."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Protocol

import numpy as np
from sqlalchemy import Connection
from sqlalchemy.orm import Session

from domain.errors import InputError
from domain.memories import MemoryView, Scope
from domain.people import Character
from domain.settings import SearchSettings
from domain.time import TimeSpan
from domain.words import make_storable
from models.ports import ImageEncoder, Reranker, TextEmbedder, Vector, embed_queries
from models.sentences import SentenceParser
from retrieval.candidates import (
    Clip,
    SearchPlan,
    add_clips,
    all_lines,
    find_candidates,
    is_large,
    search_size,
    select_videos,
)
from retrieval.heuristics.options import SHORT, is_captioned, option_actions
from retrieval.lines import ReadLines
from retrieval.people_in_query import ViewPeople, ViewPerson, view_people
from retrieval.query_context import QueryContext
from retrieval.ranking import CandidateLines, PreparedQuestion, QuestionVectors, relevance
from retrieval.relevance import CosineScale, cosine_scale
from retrieval.terms import plain_words
from store.database import Store
from store.queries.candidates import read_lines
from store.queries.characters import people_in_view
from store.queries.conditions import Reader
from store.queries.encoders import encoders_of_library, is_of_library
from store.queries.keyframes import AlikeKeyframe, keyframes_alike
from store.queries.people_in_view import faces_together, videos_naming


class TextModels(Protocol):
    """The text encoder of a library."""

    @property
    def text(self) -> TextEmbedder:
        """Text embeddings."""


class SearchModels(TextModels, Protocol):
    """The models of a search."""

    @property
    def reranker(self) -> Reranker | None:
        """Reads query and passage together, or None where the profile has none."""

    @property
    def sentences(self) -> SentenceParser:
        """Reads sentences; a language without a pipeline it does not."""

    @property
    def images(self) -> ImageEncoder | None:
        """Image-text embeddings, or None where the profile has none."""


def require_text_encoder(database: Reader, text: TextEmbedder) -> None:
    """Check that a text encoder made the vectors of the library.

    Raises:
        InputError: another one did.
    """
    if not is_of_library(database, text.name):
        known = encoders_of_library(database).text
        raise InputError(
            f"the texts of this library have vectors of {known}, and this profile searches with "
            f"{text.name}: take a profile with {known}, or change the library with 'homer reembed'"
        )


def image_encoder(database: Reader, model: ImageEncoder | None) -> ImageEncoder | None:
    """Return an image-text model if it made the vectors of the library's pictures, else None."""
    if model is None or not is_of_library(database, model.name, images=True):
        return None
    return model


def close_pictures(
    database: Reader, scopes: Sequence[Scope], model: ImageEncoder, vector: Vector, limit: int
) -> list[AlikeKeyframe]:
    """Return the keyframes in view that show what some words say, at most ``limit``, best first.

    ``vector`` is the words', (D,), by ``model``, which made the vectors of the library.
    """
    found = keyframes_alike(database, scopes, vector, limit, shown=True)
    return [one for one in found if one.cosine >= model.close]


class SearchPreparation:
    """Builds query contexts over a store; caches only the scale of cosines."""

    def __init__(self, store: Store, tools: SearchModels, weights: SearchSettings) -> None:
        self._store, self._tools, self._weights = store, tools, weights

    @cached_property
    def cosine_scale(self) -> CosineScale:
        return cosine_scale(self._tools.text)

    def context(
        self,
        view: MemoryView,
        text: str,
        options: tuple[str, ...] = (),
        clips: frozenset[tuple[str, int]] = frozenset(),
    ) -> QueryContext:
        """Find and score the candidates of a search.

        Args:
            view: The videos and the time up to which they may be searched.
            text: The question, or the query if there is no question.
            options: The options of a multiple-choice question.
            clips: (video, clip) pairs that are always candidates.

        Raises:
            InputError: The library has vectors of another text encoder.
            NotFound: A video of the view does not exist. Of a large view, only the selected videos
                are looked for.
        """
        self._store.run_read_only(partial(require_text_encoder, text=self._tools.text))
        scopes = tuple(scope for scope in view.scopes if scope.last_clip >= 0)
        text = make_storable(text)
        size = self._store.run_read_only(partial(search_size, scopes=view.scopes))
        said = " ".join([text, *options])
        # The people of a single video, or of the videos with a name in what is asked.
        naming: Collection[str] = [scope.video for scope in scopes]
        if len(scopes) > 1 and "<" not in said:
            words = set(plain_words(said))
            naming = self._store.run_read_only(partial(videos_naming, scopes=scopes, words=words))
        by_video = {scope.video: scope for scope in scopes}
        people = ViewPeople(
            self._people_of([scope for scope in scopes if scope.video in naming]),
            lambda video: self._people_of([by_video[video]]) if video in by_video else (),
        )
        now_s = (size.end_ms if view.as_of_ms is None else view.as_of_ms) / 1000
        question = PreparedQuestion(text, options, now_s, view.as_of_ms is not None, people)
        count = 0 if question.timed else len(question.options)
        may_be_captioned = bool(count) and question.english and size.clips <= SHORT
        actions = option_actions(question.text, question.options) if may_be_captioned else ()
        stated = (*question.statements()[:count], *question.options[:count], *actions)
        texts = [question.core, *stated, question.about_someone]
        rows = np.concatenate([embed_queries(self._tools.text, [text]) for text in texts])
        first, last = 1 + count, 1 + 2 * count
        action_vectors = rows[last:-1] if may_be_captioned else None
        vectors = QuestionVectors(
            rows[0], rows[1:first], rows[first:last], rows[-1], action_vectors
        )
        plan = SearchPlan(scopes, size, question, vectors, self._weights)
        if is_large(len(scopes), size):
            named, wanted = people.named_in(said), {video for video, _ in clips}
            plan = self._store.run_read_only(lambda c: select_videos(c, plan, named, wanted))
        candidates, plan = self._find(plan, _numbered(plan.scopes, clips))
        images = self._store.run_read_only(partial(image_encoder, model=self._tools.images))
        return self._scored(view, plan, images, candidates)

    def _scored(
        self,
        view: MemoryView,
        plan: SearchPlan,
        images: ImageEncoder | None,
        candidates: CandidateLines,
    ) -> QueryContext:
        found = candidates.lines.cell_count

        def add(clips: Collection[tuple[str, int]]) -> QueryContext:
            wanted = _numbered(plan.scopes, clips)
            more = self._store.run_read_only(
                lambda connection: add_clips(connection, plan, candidates, self._read, wanted)
            )
            return self._scored(view, plan, images, more)

        # The span in view of a single video; None for several or without lines.
        if len(plan.scopes) != 1 or not candidates.lines.cell_count:
            span = None
        else:
            span = TimeSpan.of(plan.size.start_ms, max(plan.size.start_ms, plan.size.end_ms))
        return QueryContext(
            query=plan.question.text,
            view=view,
            candidates=candidates,
            question=plan.question,
            vectors=plan.vectors,
            relevance=relevance(candidates, plan.question, plan.vectors, self._weights)
            if found
            else None,
            cosine_scale=self.cosine_scale,
            load_all=lambda: (
                candidates.lines
                if plan.everything
                else self._store.run_read_only(
                    lambda connection: all_lines(connection, plan, self._read)
                )
            ),
            faces_together=lambda: self._store.run_read_only(
                partial(faces_together, scopes=plan.scopes)
            ),
            add=add,
            small=plan.everything,
            span=span,
            text=self._tools.text,
            images=images,
            share=plan.share,
        )

    def _find(self, plan: SearchPlan, clips: frozenset[Clip]) -> tuple[CandidateLines, SearchPlan]:
        """Find candidates; drop the action vectors unless options are compared as actions."""
        candidates = self._store.run_read_only(
            lambda connection: find_candidates(connection, plan, self._read, clips)
        )
        described = candidates.roster is not None and is_captioned(
            candidates.lines, plan.question, candidates.roster
        )
        if not described:
            plan = replace(plan, vectors=replace(plan.vectors, actions=None))
        return candidates, plan

    @property
    def _read(self) -> ReadLines:
        return lambda ids: self._store.run_read_only(partial(read_lines, ids=ids))

    def _people_of(self, scopes: Sequence[Scope]) -> tuple[ViewPerson, ...]:
        def read(connection: Connection) -> dict[str, list[Character]]:
            with Session(connection) as session:
                return people_in_view(session, scopes)

        return view_people(self._store.run_read_only(read)).people if scopes else ()


def _numbered(scopes: Sequence[Scope], clips: Collection[tuple[str, int]]) -> frozenset[Clip]:
    numbers = {scope.video: number for number, scope in enumerate(scopes)}
    return frozenset((numbers[video], clip) for video, clip in clips if video in numbers)
