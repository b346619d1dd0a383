"""Searching: four modes and a ranking of moments, over a view of a store's memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from domain.asking import Evidence, Mode, Question
from domain.evaluation_options import AblationStage
from domain.memories import Edge, MemoryView, Scope, Segment
from domain.search import Aim, Extract, Ranking
from domain.settings import Settings
from domain.texts import make_storable
from models.ports import Reranker
from retrieval.event_mode import RankedSegments, event, neighbor, rank_segments
from retrieval.heuristics.answer_sentence import Score, by_words, extract, quoted_beside
from retrieval.keyframe_mode import Album, ImageModel, keyframe
from retrieval.line_set import LineSet
from retrieval.moments import MomentScore, best_moments, strengthened
from retrieval.options import leaning, supports, temperature, weighed
from retrieval.ports import SearchModels
from retrieval.preparation import SearchPreparation
from retrieval.query_context import QueryContext, nothing_close
from retrieval.relevance import Relevance
from retrieval.reranking import closest
from retrieval.result import Retrieval
from retrieval.structural import structural
from retrieval.video_mode import about_people, video
from store.database import Store
from store.queries.candidates import WIDE, lines_of_clips
from store.queries.clip_contents import KeyframeOnClip, clip_contents, frame_vectors
from store.queries.memories import strengths
from store.queries.people_in_view import lines_mentioning
from store.queries.search import edges_of_segment
from store.queries.segments_in_view import read_segments, segments_in_view
from store.queries.videos import video_state
from telemetry import tracing

SUPPORT_DIGITS = 4
"""Decimals of a support score."""
MENTIONS = 60
"""Lines mentioning a person that are looked into, nearest first, besides those shown already."""


class Retrievers:
    """Searches memory. Thread-safe; keeps nothing of what it searched.

    Args:
        store: whose memory is searched.
        toolbox: the models; ``text`` must be the one that the memories were embedded with.
        settings: how many neighbours, clips, memories and images are returned.
    """

    def __init__(self, store: Store, toolbox: SearchModels, settings: Settings) -> None:
        self._store, self._tools, self._settings = store, toolbox, settings
        self._preparation = SearchPreparation(store, toolbox, settings.search)
        self._stage = AblationStage.WHOLE

    def restricted_to(self, stage: AblationStage) -> Retrievers:
        """Return the same searches over less of the memory (the paper's ablation).

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
        """Search once in one mode.

        Args:
            view: what may be seen.
            mode: EVENT, VIDEO, NEIGHBOR or KEYFRAME.
            query: what is looked for; for NEIGHBOR the label of a neighbour.
            focus: id of the segment in focus. Without one, VIDEO and KEYFRAME make an EVENT first.
            seen: refs that were shown already; VIDEO passes over their clips, and KEYFRAME shows
                other images first.
            aim: what the search is for. With it a search that is not within one segment also lists
                the moments of the whole view, and the evidence is weighed by the options.

        Raises:
            InputError: NEIGHBOR without a focus.
            UnknownLabel: NEIGHBOR with a label that no neighbour has.
            NotFound: a video of the view is not there.
        """
        with tracing.span(
            tracing.Work.SEARCH, f"search {mode}", mode=mode, videos=len(view.videos)
        ) as span:
            found = self._search(view, _Round(mode, make_storable(query), focus, seen), aim)
            span.fields |= {"found": len(found.evidence), "nothing_close": found.nothing_close}
        return found

    def rank(self, view: MemoryView, question: Question, limit: int = 10) -> Ranking:
        """Rank the moments of the view that a question is about, and how they support its options.

        Args:
            view: what may be seen.
            question: text and options; its videos and as-of time are those of ``view``.
            limit: moments returned at most, one a clip.
        """
        context = self._preparation.context(view, question.text, question.options)
        if context.relevance is None:
            return Ranking(question=question.text, nothing_close=True)
        return self._ranked(context, leaning(context.relevance), limit)

    def support(self, claim: str, passages: Sequence[str]) -> tuple[float, ...]:
        """Return how well each passage supports a claim, in [0, 1]: by the reranker, or vectors."""
        if not passages:
            return ()
        if self._tools.reranker is not None:
            scores = self._tools.reranker.scores(make_storable(claim), list(passages))
            return tuple(round(float(score), SUPPORT_DIGITS) for score in scores)
        vectors = self._tools.text.embed([make_storable(claim), *passages])
        near = self._preparation.cosine_scale.nearness
        return tuple(
            round(near(float(vector @ vectors[0])), SUPPORT_DIGITS) for vector in vectors[1:]
        )

    def _search(self, view: MemoryView, asked: _Round, aim: Aim | None) -> Retrieval:
        text, options = (asked.query, ()) if aim is None else (aim.text, aim.options)
        segment = None if asked.focus is None else self._segment(view, asked.focus)
        clips = (
            frozenset((segment.video, clip) for clip in segment.clips) if segment else frozenset()
        )
        whole = replace(self._preparation.context(view, text, options, clips), query=asked.query)
        if aim is None:
            return self._in_mode(whole, asked, segment)
        context = whole.about(aim.letters)
        ordinary = partial(self._with_aim, context, asked, segment, aim.moments)
        if aim.structure is None or context.relevance is None or whole.found.view_lines > WIDE:
            found = ordinary()
        else:
            found = structural(context, aim.structure, asked.mode, self._tools.text, ordinary)
        scores, scale = weighed(whole, found.evidence), temperature(whole)
        return found.model_copy(update={"weighed": scores, "temperature": scale})

    def _with_aim(
        self, context: QueryContext, asked: _Round, segment: Segment | None, moments: int
    ) -> Retrieval:
        found = self._in_mode(context, asked, segment)
        if asked.mode is Mode.EVENT or (asked.mode is Mode.VIDEO and found.focus is None):
            return self._with_moments(found, context, moments)
        return found

    def _in_mode(self, context: QueryContext, asked: _Round, segment: Segment | None) -> Retrieval:
        ask = self._settings.ask
        if asked.mode in (Mode.EVENT, Mode.NEIGHBOR):
            edges_of = partial(self._edges, context)
            ranked = self._rank_segments(context)
            if asked.mode is Mode.EVENT:
                return event(context, ranked, edges_of, ask.event_neighbours)
            return neighbor(context, ranked, asked.focus, edges_of, ask.event_neighbours)
        context, segment = self._in_focus(context, segment)
        if asked.mode is Mode.KEYFRAME:
            albums = self._albums(context, segment)
            return keyframe(context, segment, albums, ask.images, self._image_model, asked.seen)
        return self._video(context, segment, asked.seen)

    def _in_focus(
        self, context: QueryContext, segment: Segment | None
    ) -> tuple[QueryContext, Segment | None]:
        """The segment in focus, else the best one, and a search that has its clips."""
        if self._stage is AblationStage.ENTITY:
            return context, None
        if segment is not None:
            return context, segment
        ranked = self._rank_segments(context)
        best = ranked.best()
        if best is None:
            return context, None
        segment = ranked.segment(best)
        return self._with_clips(context, _clips_of(segment)), segment

    def _with_clips(self, context: QueryContext, clips: Sequence[tuple[str, int]]) -> QueryContext:
        """The same search with the lines of some more clips."""
        lines = context.lines
        held = set(zip(lines.cell_video.tolist(), lines.cell_clip.tolist(), strict=True))
        if context.small or all((lines.number_of(video), clip) in held for video, clip in clips):
            return context
        asked = context.asked
        more = self._preparation.context(context.view, asked.text, asked.options, frozenset(clips))
        return replace(more, query=context.query)

    def _segment(self, view: MemoryView, focus: int) -> Segment | None:
        found = self._store.run_read_only(partial(read_segments, scopes=view.scopes, ids=[focus]))
        return found.get(focus)

    def _rank_segments(self, context: QueryContext) -> RankedSegments:
        scopes = context.lines.scopes
        vector = context.vectors.question
        near = self._store.run_read_only(partial(segments_in_view, scopes=scopes, vector=vector))

        def read(ids: Sequence[int]) -> Mapping[int, Segment]:
            missing = [one for one in ids if one not in known]
            if missing:
                read_more = partial(read_segments, scopes=scopes, ids=missing)
                known.update(self._store.run_read_only(read_more))
            return known

        known: dict[int, Segment] = {}
        return rank_segments(context, near, read)

    def _edges(self, context: QueryContext, segment: Segment) -> Sequence[Edge]:
        if Mode.NEIGHBOR not in self._stage.modes:
            return ()
        scope = context.scope(segment.video)
        return self._store.run_read_only(partial(edges_of_segment, scope=scope, segment=segment.id))

    def _video(
        self, context: QueryContext, segment: Segment | None, seen: frozenset[str]
    ) -> Retrieval:
        """The lines about the person that is asked about, else of the best clips."""
        ask = self._settings.ask
        people = context.people.named_in(context.query) if context.relevance else ()
        if people:
            tags = {one.video: set[str]() for one in people}
            for one in people:
                tags[one.video] |= set(one.tags)
            shown = {int(ref[1:]) for ref in seen if ref.startswith("m")}
            for where in (segment, None) if segment else (None,):
                mentions = self._mentions(context, tags, where, len(shown))
                fresh = [one for one in mentions if one[0] not in shown]
                if fresh:
                    more = self._with_clips(context, [clip for _, clip in fresh])
                    wanted = ask.character_memories
                    return about_people(more, segment, people, [i for i, _ in fresh], wanted)
        return video(context, segment, seen, ask)

    def _mentions(
        self,
        context: QueryContext,
        tags: Mapping[str, set[str]],
        where: Segment | None,
        shown: int,
    ) -> list[tuple[int, tuple[str, int]]]:
        """Lines that mention people, nearest first: ids, and (video, clip)."""
        scopes = context.lines.scopes
        wanted = dict(tags) if where is None else {where.video: tags.get(where.video, set())}
        clips = None if where is None else where.clips
        found = self._store.run_read_only(
            lambda connection: lines_mentioning(
                connection, scopes, wanted, context.vectors.question, MENTIONS + shown, clips
            )
        )
        return [(one.id, (scopes[one.video].video, one.clip)) for one in found]

    def _with_moments(self, found: Retrieval, context: QueryContext, limit: int) -> Retrieval:
        """A search with the moments of the whole view that it is about, after its own evidence.

        Only what is close, where anything is; but options are compared by what is nearest to each.
        """
        if context.relevance is None or not limit:
            return found
        ranked = self._ranked(context, context.relevance, limit)
        own = () if found.nothing_close and not ranked.nothing_close else found.evidence
        far = ranked.nothing_close and not found.nothing_close and not context.asked.options
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

    def _ranked(self, context: QueryContext, by: Relevance, limit: int) -> Ranking:
        """The moments of the whole view by their relevance ``by``."""
        asked, own = context.asked, context.relevance
        reranker = None if asked.options else self._tools.reranker
        best = best_moments(context.found, asked, by, limit, reranker)
        moments = strengthened(best, self._learned_again(context, best))
        reread = closest(context.lines, asked, [m.line for m in moments[:1]], reranker)
        evidence = context.evidence(moments, reread)
        nothing = nothing_close(evidence, context.found.view_lines)
        quoted = not asked.options and not nothing
        return Ranking(
            question=asked.text,
            evidence=evidence,
            options=supports(context.found, asked, own) if own is not None else (),
            extract=self._extract(context, moments[0], evidence[0]) if quoted else None,
            nothing_close=nothing,
            span=context.span,
        )

    def _learned_again(
        self, context: QueryContext, moments: Sequence[MomentScore]
    ) -> dict[int, int]:
        """How often the facts of these lines were learned again, by line, as of the view."""
        arrays = context.lines.arrays
        lines: dict[int, dict[int, int]] = {}
        for moment in moments:
            own = lines.setdefault(int(arrays.video[moment.line]), {})
            own[int(arrays.id[moment.line])] = moment.line
        again: dict[int, int] = {}
        for number, ids in lines.items():
            as_of = context.lines.scopes[number].last_clip
            found = self._store.run_read_only(partial(strengths, memory_ids=[*ids], as_of=as_of))
            again |= {ids[memory]: count for memory, count in found.items()}
        return again

    def _extract(self, context: QueryContext, best: MomentScore, evidence: Evidence) -> Extract:
        question, reranker = context.asked.text, self._tools.reranker
        score = by_words(question) if reranker is None else _by_reading(question, reranker)
        names = context.people.names(evidence.video)
        lines, line = self._around(context, best.line)
        return extract(lines, line, score, names, evidence.score)

    def _around(self, context: QueryContext, line: int) -> tuple[LineSet, int]:
        """The lines of a line's clip and of those beside it, and where it is among them."""
        lines = context.lines
        if context.small:
            return lines, line
        video_number, clip = int(lines.arrays.video[line]), int(lines.arrays.clip[line])
        clips = [(video_number, one) for one in range(max(0, clip - 1), clip + 2)]
        size = lines.arrays.vectors.shape[1]
        arrays = self._store.run_read_only(
            lambda connection: lines_of_clips(connection, lines.scopes, clips, size)
        )
        around = LineSet(lines.scopes, arrays, lines.read)
        return around, int(np.flatnonzero(arrays.id == lines.arrays.id[line])[0])

    def _albums(self, context: QueryContext, focus: Segment | None) -> list[Album]:
        if focus is not None:
            return [self._album(context, context.scope(focus.video), focus.clips)]
        scopes, lines = context.view.scopes, context.lines
        if context.small:
            # Also clips of which nothing was remembered: there may be something to see.
            return [self._album(context, one, range(one.last_clip + 1)) for one in scopes]
        return [
            self._album(context, one, lines.cell_clip[lines.cell_video == number].tolist())
            for number, one in enumerate(lines.scopes)
        ]

    def _album(self, context: QueryContext, scope: Scope, clips: Sequence[int]) -> Album:
        found = self._store.run_read_only(partial(clip_contents, scope=scope, clips=clips))
        return Album(scope.video, found, self._likeness(context, scope.video, found.frames))

    @property
    def _image_model(self) -> ImageModel | None:
        encoder = self._tools.images
        return None if encoder is None else ImageModel(encoder.name, encoder.close)

    def _likeness(
        self, context: QueryContext, video_id: str, frames: Sequence[KeyframeOnClip]
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
        query = encoder.text(context.query)
        return {frame: float(vector @ query) for frame, vector in vectors.items()}


@dataclass(frozen=True)
class _Round:
    """What one search asks for: its mode and words, the segment in focus, what was shown."""

    mode: Mode
    query: str
    focus: int | None
    seen: frozenset[str]


def _clips_of(segment: Segment) -> list[tuple[str, int]]:
    return [(segment.video, clip) for clip in segment.clips]


def _by_reading(question: str, reranker: Reranker) -> Score:
    def score(parts: Sequence[str]) -> list[float]:
        return [float(one) for one in reranker.scores(question, list(parts))]

    return score
