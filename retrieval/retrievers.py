"""The door of searching: four modes and a ranking of moments, over a view of a store's memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from operator import is_

import numpy as np

from domain.asking import Evidence, Mode, Question
from domain.evaluation_options import AblationStage
from domain.memories import Edge, MemoryView, Scope, Segment
from domain.search import Aim, Extract, Ranking
from domain.settings import Settings
from domain.texts import make_storable
from models.ports import Reranker
from retrieval.closeness import Yardstick, yardstick
from retrieval.event_mode import EdgesOf, event, neighbor, rank_segments
from retrieval.heuristics.answer_sentence import Score, by_words, extract, quoted_beside
from retrieval.heuristics.captioned_options import doings, is_described
from retrieval.index_cache import IndexCache
from retrieval.keyframe_mode import Album, Eyes, keyframe
from retrieval.moments import MomentScore, best_moments, strengthened
from retrieval.options import leaning, supports, temperature, weighed
from retrieval.ports import SearchModels
from retrieval.query_context import QueryContext, nothing_close
from retrieval.ranking import PreparedQuestion, QuestionVectors, relevance
from retrieval.relevance import Relevance
from retrieval.reranking import closest
from retrieval.result import Retrieval
from retrieval.segment_index import SegmentIndex, woven
from retrieval.structural import structural
from retrieval.video_index import Ints, VideoIndex
from retrieval.video_mode import MentionsOf, video
from retrieval.view_index import ViewIndex, panorama
from store.database import Store
from store.queries.clip_contents import KeyframeOnClip, frame_vectors, on_clips
from store.queries.memories import strengths
from store.queries.search import edges_of_segment, memories_mentioning
from store.queries.stamps import Stamp
from store.queries.videos import video_state
from telemetry import tracing

_Seen = tuple[tuple[Scope, ...], Sequence[VideoIndex], ViewIndex]
"""What the last search saw: the scopes, their indexes, and all of them laid out."""


SUPPORT_DIGITS = 4
"""Decimals of a support score."""
KEPT = 4
"""Rankings by questions with options that are kept: the searches for its options share one."""


@dataclass(frozen=True, eq=False)
class _Fielded:
    """How relevant all that is seen is to what is asked; never changed, since it is exact."""

    seen: ViewIndex
    asked: PreparedQuestion
    vectors: QuestionVectors
    field: Relevance | None


class Retrievers:
    """Searches memory. One for many questions: indexes are kept between them. Thread-safe.

    Args:
        store: whose memory is searched.
        toolbox: the models; ``text`` must be the one that the memories were embedded with.
        settings: how many neighbours, clips, memories and images are returned.
    """

    def __init__(self, store: Store, toolbox: SearchModels, settings: Settings) -> None:
        self._store, self._tools, self._settings = store, toolbox, settings
        self._cache = IndexCache(store, settings.watch.clip_ms)
        self._yardstick: Yardstick | None = None
        self._last_seen: _Seen = ((), (), ViewIndex(()))
        self._last_woven = (self._last_seen[2], woven(self._last_seen[2], ()))
        self._last_fields: tuple[_Fielded, ...] = ()
        self._stage = AblationStage.WHOLE

    def within(self, stage: AblationStage) -> Retrievers:
        """The same searches over less of the memory (the paper's ablation); indexes are shared.

        Without event nodes VIDEO looks at all clips in view; without edges EVENT has no neighbours.
        """
        less = copy(self)
        less._stage = stage
        return less

    def search(
        self,
        view: MemoryView,
        mode: Mode,
        query: str,
        focus: int | None = None,
        seen: frozenset[str] = frozenset(),
        aim: Aim | None = None,
    ) -> Retrieval:
        """One search in one mode.

        Args:
            view: what may be seen.
            mode: EVENT, VIDEO, NEIGHBOR or KEYFRAME.
            query: what is looked for; for NEIGHBOR the label of a neighbour.
            focus: id of the segment in focus. Without one, VIDEO and KEYFRAME make an EVENT first.
            seen: refs that were shown already; VIDEO passes over their clips.
            aim: what the search is for. With it a search that is not within one segment also lists
                the moments of the whole view, and the evidence is weighed by the options.

        Raises:
            InputError: NEIGHBOR without a focus.
            UnknownLabel: NEIGHBOR with a label that no neighbour has.
            NotFound: a video of the view is not there.
        """
        with tracing.span(
            tracing.Work.SEARCH, f"search {mode}", mode=mode, videos=len(view.videos)
        ) as told:
            found = self._search(view, mode, query, focus, seen, aim)
            told.fields |= {"found": len(found.evidence), "nothing_close": found.nothing_close}
        return found

    def _search(
        self,
        view: MemoryView,
        mode: Mode,
        query: str,
        focus: int | None,
        seen: frozenset[str],
        aim: Aim | None,
    ) -> Retrieval:
        if aim is None:
            return self._in_mode(self.sought(view, query), mode, focus, seen)
        whole = replace(self.sought(view, aim.text, aim.options), query=query)
        sought = whole.about(aim.letters)
        ordinary = partial(self._with_aim, sought, mode, focus, seen, aim.moments)
        if aim.structure is None or sought.field is None:
            found = ordinary()
        else:
            found = structural(sought, aim.structure, mode, self._tools.text, ordinary)
        scores, scale = weighed(whole, found.evidence), temperature(whole)
        return found.model_copy(update={"weighed": scores, "temperature": scale})

    def _with_aim(
        self,
        sought: QueryContext,
        mode: Mode,
        focus: int | None,
        seen: frozenset[str],
        moments: int,
    ) -> Retrieval:
        found = self._in_mode(sought, mode, focus, seen)
        if mode is Mode.EVENT or (mode is Mode.VIDEO and found.focus is None):
            return self._with_moments(found, sought, moments)
        return found

    def _in_mode(
        self, sought: QueryContext, mode: Mode, focus: int | None, seen: frozenset[str]
    ) -> Retrieval:
        ask = self._settings.ask
        if mode == Mode.EVENT:
            return event(sought, self._edges_of(sought), ask.event_neighbours)
        if mode == Mode.NEIGHBOR:
            return neighbor(sought, focus, self._edges_of(sought), ask.event_neighbours)
        segment = self._focus(sought, focus)
        if mode == Mode.VIDEO:
            return video(sought, segment, self._mentions_of(sought), seen, ask)
        return keyframe(sought, segment, self._albums(sought, segment), ask.images, self._eyes)

    def _with_moments(self, found: Retrieval, sought: QueryContext, limit: int) -> Retrieval:
        """A search with the moments of the whole view that it is about, after its own evidence.

        Only what is close, where anything is; but options are compared by what is nearest to each.
        """
        if sought.field is None or not limit:
            return found
        ranked = self._ranked(sought, sought.field, limit)
        own = () if found.nothing_close and not ranked.nothing_close else found.evidence
        far = ranked.nothing_close and not found.nothing_close and not sought.asked.options
        more = () if far else ranked.evidence
        known = {e.ref for e in own}
        evidence = (*own, *(e for e in more if e.ref not in known))
        return found.model_copy(
            update={
                "evidence": (*evidence, *quoted_beside(ranked.extract, evidence)),
                "nothing_close": found.nothing_close and ranked.nothing_close,
                "extract": ranked.extract,
            }
        )

    def rank(self, view: MemoryView, question: Question, limit: int = 10) -> Ranking:
        """The moments of the view that a question is about, and how they support its options.

        Args:
            view: what may be seen.
            question: text and options; its videos and as-of time are those of ``view``.
            limit: moments returned at most, one a clip.
        """
        sought = self.sought(view, question.text, question.options)
        if sought.field is None:
            return Ranking(question=question.text, nothing_close=True)
        return self._ranked(sought, leaning(sought.field), limit)

    def support(self, claim: str, passages: Sequence[str]) -> tuple[float, ...]:
        """How well each passage supports a claim, in [0, 1]: by the reranker, else by vectors."""
        if not passages:
            return ()
        if self._tools.reranker is not None:
            scores = self._tools.reranker.scores(make_storable(claim), list(passages))
            return tuple(round(float(score), SUPPORT_DIGITS) for score in scores)
        vectors = self._tools.text.embed([make_storable(claim), *passages])
        near = self._measure().nearness
        return tuple(
            round(near(float(vector @ vectors[0])), SUPPORT_DIGITS) for vector in vectors[1:]
        )

    def _ranked(self, sought: QueryContext, field: Relevance, limit: int) -> Ranking:
        """The moments of the whole view by a field over it."""
        asked, own = sought.asked, sought.field
        reranker = None if asked.options else self._tools.reranker
        found = best_moments(sought.panorama, asked, field, limit, reranker)
        moments = strengthened(found, self._learned_again(sought.panorama, found))
        reread = closest(sought.panorama, asked, [m.line for m in moments[:1]], reranker)
        evidence = sought.evidence(moments, reread)
        nothing = nothing_close(evidence, sought.panorama.line_count)
        quoted = not asked.options and not nothing
        return Ranking(
            question=asked.text,
            evidence=evidence,
            options=supports(sought.panorama, asked, own) if own is not None else (),
            extract=self._extract(sought, moments[0], evidence[0]) if quoted else None,
            nothing_close=nothing,
            span=sought.span,
        )

    def _learned_again(self, seen: ViewIndex, moments: Sequence[MomentScore]) -> dict[int, int]:
        """How often the facts of these lines were learned again, by line, as of the view."""
        lines: dict[str, dict[int, int]] = {}
        for moment in moments:
            video, row = seen.line(moment.line)
            lines.setdefault(video, {})[row.id] = moment.line
        again: dict[int, int] = {}
        for video, numbers in lines.items():
            scope = seen.scope(video)
            as_of = scope.last_clip if scope else 0
            found = self._store.run_read_only(
                partial(strengths, memory_ids=[*numbers], as_of=as_of)
            )
            again |= {numbers[memory]: count for memory, count in found.items()}
        return again

    def _extract(self, sought: QueryContext, best: MomentScore, evidence: Evidence) -> Extract:
        question, reranker = sought.asked.text, self._tools.reranker
        score = by_words(question)
        if reranker is not None:
            score = _by_reading(question, reranker)
        names = sought.cast.names(evidence.video)
        return extract(sought.panorama, best.line, score, names, evidence.score)

    def sought(self, view: MemoryView, text: str, options: tuple[str, ...] = ()) -> QueryContext:
        """A search made ready: what is in view, and how relevant all of it is."""
        looked = self._cache.look(view.scopes)
        asked = PreparedQuestion(make_storable(text), options, _seconds(view), looked.cast)
        seen = self._panorama(view, looked.indexes)
        vectors, field = self._weighed(asked, seen)
        return QueryContext(
            query=asked.text,
            view=view,
            panorama=seen,
            asked=asked,
            vectors=vectors,
            field=field,
            look_up=lambda seen: self._woven(seen, looked.stamps),
            yardstick=self._measure(),
            languages=self._tools.text.languages,
        )

    def _weighed(
        self, asked: PreparedQuestion, seen: ViewIndex
    ) -> tuple[QuestionVectors, Relevance | None]:
        """How relevant all in view is; searches for the options of one question share that."""
        for known in self._last_fields:
            if known.seen is seen and known.asked == asked:
                return known.vectors, known.field
        vectors = self._vectors(asked, seen)
        field = relevance(seen, asked, vectors) if seen.cell_count else None
        if asked.options:
            made = _Fielded(seen, asked, vectors, field)
            self._last_fields = (made, *self._last_fields[: KEPT - 1])
        return vectors, field

    def _vectors(self, asked: PreparedQuestion, seen: ViewIndex) -> QuestionVectors:
        count = 0 if asked.timed(seen) else len(asked.options)
        as_doings = is_described(seen, asked)
        told = doings(asked.text, asked.options) if as_doings else ()
        options = (*asked.statements()[:count], *asked.options[:count], *told)
        texts = [asked.bare, *options, asked.somebody]
        rows = np.concatenate([self._tools.text.embed([text]) for text in texts])
        first, last = 1 + count, 1 + 2 * count
        said = rows[last:-1] if as_doings else None
        return QuestionVectors(rows[0], rows[1:first], rows[first:last], rows[-1], said)

    def _panorama(self, view: MemoryView, indexes: Sequence[VideoIndex]) -> ViewIndex:
        """The last one where it is of the same again, with all that was worked out of it."""
        scopes, held, seen = self._last_seen
        if scopes == view.scopes and all(map(is_, held, indexes)):
            return seen
        seen = panorama(view, indexes)
        self._last_seen = view.scopes, indexes, seen
        return seen

    def _woven(self, seen: ViewIndex, now: Mapping[str, Stamp]) -> SegmentIndex:
        """The last one where the same segments are in the same view again."""
        views = self._cache.events(seen.parts, now)
        last, found = self._last_woven
        if last is seen and all(map(is_, views, found.views)):
            return found
        found = woven(seen, views)
        self._last_woven = seen, found
        return found

    def _measure(self) -> Yardstick:
        if self._yardstick is None:
            self._yardstick = yardstick(self._tools.text)
        return self._yardstick

    def _focus(self, sought: QueryContext, focus: int | None) -> Segment | None:
        """The segment in focus; the best one for the query where there is none."""
        if self._stage is AblationStage.ENTITY:
            return None
        known = None if focus is None else sought.woven.places.get(focus)
        if known is not None:
            return sought.woven.found[known].segment
        ranked = rank_segments(sought)
        return ranked.found[ranked.best()].segment if ranked.found else None

    def _edges_of(self, sought: QueryContext) -> EdgesOf:
        if Mode.NEIGHBOR not in self._stage.modes:
            return lambda _: ()
        return _EdgesOf(self._store, sought)

    def _mentions_of(self, sought: QueryContext) -> MentionsOf:
        """Looked up once for each person in a view: as long as it stays, so do its lines."""
        view = sought.panorama
        return lambda person: view.of_term(self._mentions, person.video, person.tags)

    def _mentions(self, seen: ViewIndex, video: str, tags: tuple[str, ...]) -> Ints:
        scope = seen.scope(video)
        if scope is None:
            return np.zeros(0, dtype=np.int64)
        ids = self._store.run_read_only(partial(memories_mentioning, scope=scope, tags=tags))
        return seen.lines_with(video, ids)

    def _albums(self, sought: QueryContext, focus: Segment | None) -> list[Album]:
        if focus is not None:
            return [self._album(sought, sought.scope(focus.video), focus.clips)]
        # Also clips of which nothing was remembered: there may be something to see.
        return [
            self._album(sought, scope, range(scope.last_clip + 1)) for scope in sought.view.scopes
        ]

    def _album(self, sought: QueryContext, scope: Scope, clips: Sequence[int]) -> Album:
        found = self._store.run_read_only(partial(on_clips, scope=scope, clips=clips))
        return Album(scope.video, found, self._likeness(sought, scope.video, found.frames))

    @property
    def _eyes(self) -> Eyes | None:
        encoder = self._tools.images
        return None if encoder is None else Eyes(encoder.name, encoder.close)

    def _likeness(
        self, sought: QueryContext, video_id: str, frames: Sequence[KeyframeOnClip]
    ) -> dict[int, float]:
        """Cosines of the query with keyframes, where the very model of this search saw them."""
        encoder = self._tools.images
        if encoder is None:
            return {}
        with self._store.begin() as session:
            state = video_state(session, video_id)
            if state is None or state.models.get("images") != encoder.name:
                return {}
            vectors = frame_vectors(session, [one.id for one in frames])
        if not vectors:
            return {}
        query = encoder.text(sought.query)
        return {frame: float(vector @ query) for frame, vector in vectors.items()}


class _EdgesOf:
    """Reads the edges of a segment, as of the search's view."""

    def __init__(self, store: Store, sought: QueryContext) -> None:
        self._store, self._sought = store, sought

    def __call__(self, segment: Segment) -> Sequence[Edge]:
        known = next(one.edges for one in self._sought.woven.views if one.video == segment.video)
        if segment.id not in known:
            scope = self._sought.scope(segment.video)
            known[segment.id] = self._store.run_read_only(
                partial(edges_of_segment, scope=scope, segment=segment.id)
            )
        return known[segment.id]


def _by_reading(question: str, reranker: Reranker) -> Score:
    def score(parts: Sequence[str]) -> list[float]:
        return [float(one) for one in reranker.scores(question, list(parts))]

    return score


def _seconds(view: MemoryView) -> float | None:
    return None if view.as_of_ms is None else view.as_of_ms / 1000
