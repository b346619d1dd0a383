"""Makes a search ready: who is known, vectors of what is asked, candidates and their relevance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial

import numpy as np
from sqlalchemy.orm import Session

from domain.memories import MemoryView, Scope
from domain.settings import SearchSettings
from domain.texts import make_storable
from domain.time import TimeSpan
from people.corrected import people_in_view
from retrieval.candidates import Clip, SearchPlan, all_lines, find
from retrieval.closeness import CosineScale, cosine_scale
from retrieval.heuristics.captioned_options import SHORT, doings, is_described
from retrieval.line_set import LineSet, ReadLines
from retrieval.people_in_query import ViewPeople, ViewPerson
from retrieval.ports import SearchModels
from retrieval.query_context import QueryContext
from retrieval.ranking import PreparedQuestion, QuestionVectors, SearchedLines, relevance
from retrieval.terms import plain_words
from store.database import Store
from store.queries.candidates import ViewSize, read_lines, view_size
from store.queries.people_in_view import videos_naming


class SearchPreparation:
    """Makes query contexts over a store. Keeps nothing but what cosines of its model mean."""

    def __init__(self, store: Store, tools: SearchModels, weights: SearchSettings) -> None:
        self._store, self._tools, self._weights = store, tools, weights

    @cached_property
    def cosine_scale(self) -> CosineScale:
        """What cosines of the text model mean."""
        return cosine_scale(self._tools.text)

    def context(
        self,
        view: MemoryView,
        text: str,
        options: tuple[str, ...] = (),
        clips: frozenset[tuple[str, int]] = frozenset(),
    ) -> QueryContext:
        """Make a search ready.

        Args:
            view: what may be seen.
            text: the question, or the query where nothing else is asked.
            options: what is chosen from.
            clips: (video, clip) pairs that are needed whatever is asked.

        Raises:
            NotFound: a video of the view is not there.
        """
        scopes = tuple(scope for scope in view.scopes if scope.last_clip >= 0)
        text = make_storable(text)
        with self._store.begin() as session:
            size = view_size(session, view.scopes)
            people = self._people(session, scopes, " ".join([text, *options]))
        now_s = (size.end_ms if view.as_of_ms is None else view.as_of_ms) / 1000
        asked = PreparedQuestion(text, options, now_s, view.as_of_ms is not None, people)
        plan = SearchPlan(scopes, size, asked, self._vectors(asked, size), self._weights)
        found, plan = self._find(plan, _numbered(scopes, clips))
        ready = (
            relevance(found, asked, plan.vectors, self._weights) if found.lines.cell_count else None
        )
        return QueryContext(
            query=asked.text,
            view=view,
            found=found,
            asked=asked,
            vectors=plan.vectors,
            relevance=ready,
            cosine_scale=self.cosine_scale,
            load_all=partial(self._all_lines, plan, found),
            small=plan.everything,
            span=_span(scopes, size, found),
            languages=self._tools.text.languages,
        )

    def _find(self, plan: SearchPlan, clips: frozenset[Clip]) -> tuple[SearchedLines, SearchPlan]:
        """What is ranked; the vectors of options as doings go where they are not compared so."""
        found = self._store.run_read_only(
            lambda connection: find(connection, plan, self._read, clips)
        )
        described = found.roster is not None and is_described(found.lines, plan.asked, found.roster)
        if not described:
            plan = replace(plan, vectors=replace(plan.vectors, doings=None))
        return found, plan

    def _all_lines(self, plan: SearchPlan, found: SearchedLines) -> LineSet:
        if plan.everything:
            return found.lines
        return self._store.run_read_only(lambda connection: all_lines(connection, plan, self._read))

    @property
    def _read(self) -> ReadLines:
        return lambda ids: self._store.run_read_only(partial(read_lines, ids=ids))

    def _vectors(self, asked: PreparedQuestion, size: ViewSize) -> QuestionVectors:
        count = 0 if asked.timed else len(asked.options)
        might = bool(count) and size.clips <= SHORT
        acts = doings(asked.text, asked.options) if might else ()
        options = (*asked.statements()[:count], *asked.options[:count], *acts)
        texts = [asked.bare, *options, asked.somebody]
        rows = np.concatenate([self._tools.text.embed([text]) for text in texts])
        first, last = 1 + count, 1 + 2 * count
        own = rows[last:-1] if might else None
        return QuestionVectors(rows[0], rows[1:first], rows[first:last], rows[-1], own)

    def _people(self, session: Session, scopes: Sequence[Scope], text: str) -> ViewPeople:
        """Who is known: in a single video everybody, else where somebody has a name in ``text``."""
        chosen = scopes
        if len(scopes) > 1 and "<" not in text:
            naming = videos_naming(session, scopes, set(plain_words(text)))
            chosen = [scope for scope in scopes if scope.video in naming]
        by_video = {scope.video: scope for scope in scopes}
        return ViewPeople(
            _people_of(session, chosen),
            lambda video: self._people_of_video(by_video[video]) if video in by_video else (),
        )

    def _people_of_video(self, scope: Scope) -> tuple[ViewPerson, ...]:
        with self._store.begin() as session:
            return _people_of(session, [scope])


def _people_of(session: Session, scopes: Sequence[Scope]) -> tuple[ViewPerson, ...]:
    found = people_in_view(session, scopes) if scopes else {}
    return tuple(ViewPerson(video, one) for video, people in found.items() for one in people)


def _numbered(scopes: Sequence[Scope], clips: frozenset[tuple[str, int]]) -> frozenset[Clip]:
    numbers = {scope.video: number for number, scope in enumerate(scopes)}
    return frozenset((numbers[video], clip) for video, clip in clips if video in numbers)


def _span(scopes: Sequence[Scope], size: ViewSize, found: SearchedLines) -> TimeSpan | None:
    """The time in view of a single video that anything is remembered of."""
    if len(scopes) != 1 or not found.lines.cell_count:
        return None
    return TimeSpan.of(size.start_ms, max(size.start_ms, size.end_ms))
