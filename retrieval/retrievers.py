"""The four search modes and the ranking of lines, over a view of a store's memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from domain.asking import Evidence, Mode
from domain.errors import InputError
from domain.evaluation_options import AblationStage
from domain.memories import Edge, MemoryView, Scope, Segment
from domain.search import Aim, Extract
from domain.settings import Settings
from domain.texts import make_storable, one_line
from domain.time import TimeSpan
from retrieval.by_video import FEW_VIDEOS, VideoResult, answered_by_video, quoted_by_video
from retrieval.event_mode import RankedSegments, event, neighbor, rank_segments
from retrieval.heuristics.answer_sentence import (
    extract,
    quote_evidence,
    score_by_reranker,
    score_by_words,
)
from retrieval.image_encoders import ImageEncoders
from retrieval.keyframe_mode import ImageModel, VideoKeyframes, keyframe, keyframes_at
from retrieval.line_ranking import RankedLine, add_strength, best_lines
from retrieval.line_set import LineSet
from retrieval.looking import look_at
from retrieval.options import temperature, weigh_evidence
from retrieval.ports import SearchModels
from retrieval.preparation import SearchPreparation
from retrieval.query_context import QueryContext, nothing_close
from retrieval.reranking import best_probability
from retrieval.result import Retrieval
from retrieval.structural import structural, where_last_seen
from retrieval.video_mode import about_people, video
from store.database import Store
from store.queries.candidates import lines_of_clips
from store.queries.clip_contents import (
    KeyframeOnClip,
    clip_contents,
    description_vectors,
    frame_vectors,
)
from store.queries.memories import strengths
from store.queries.people_in_view import lines_mentioning
from store.queries.search import edges_of_segment
from store.queries.segments_in_view import read_segments, segment_texts, segments_in_view
from store.queries.videos import video_titles
from telemetry import tracing

SUPPORT_DIGITS = 4
"""Decimals of a support score."""
MENTIONS = 60
"""Maximum number of lines fetched that mention a person, besides those shown already."""


class Retrievers:
    """Searches memory. Thread-safe and stateless.

    Args:
        store: The store.
        toolbox: The models; ``text`` must be the one that the memories were embedded with.
        settings: Numbers of neighbours, clips, memories and images to return.
    """

    def __init__(self, store: Store, toolbox: SearchModels, settings: Settings) -> None:
        self._store, self._tools, self._settings = store, toolbox, settings
        self._preparation = SearchPreparation(store, toolbox, settings.search)
        self._image_encoders = ImageEncoders(toolbox)
        self._stage = AblationStage.WHOLE

    def restricted_to(self, stage: AblationStage) -> Retrievers:
        """Return a search over part of the memory (the memory ablation of section 4).

        Without event nodes VIDEO searches all clips in view; without edges EVENT has no neighbours.
        """
        restricted = copy(self)
        restricted._stage = stage
        return restricted

    def search(
        self,
        view: MemoryView,
        mode: Mode,
        query: str,
        focus: int | None = None,
        seen: frozenset[str] = frozenset(),
        aim: Aim | None = None,
        span: TimeSpan | None = None,
    ) -> Retrieval:
        """Search once in one mode.

        Args:
            view: The videos and the time up to which they may be searched.
            mode: EVENT, VIDEO, NEIGHBOR or KEYFRAME.
            query: The query; for NEIGHBOR the label of a neighbour.
            focus: Id of the segment in focus. Without one, VIDEO and KEYFRAME search EVENT first.
            seen: Refs that were shown already; VIDEO skips their clips, and KEYFRAME ranks other
                images first.
            aim: The question behind the query. With it, a search that is not within one segment
                also returns the best lines of the whole view, and evidence is scored by option.
            span: For KEYFRAME: the time of the images, instead of those closest to the query.

        Raises:
            InputError: NEIGHBOR without a focus, or nothing is in view at ``span``.
            UnknownLabel: NEIGHBOR with a label that no neighbour has.
            NotFound: A video of the view does not exist.
        """
        with tracing.span(
            tracing.Work.SEARCH, f"search {mode}", mode=mode, videos=len(view.scopes)
        ) as traced:
            request = _ModeSearch(mode, make_storable(query), focus, seen, span)
            result = self._search(view, request, aim)
            traced.fields |= {"found": len(result.evidence), "nothing_close": result.nothing_close}
        return result

    def support(self, claim: str, passages: Sequence[str]) -> tuple[float, ...]:
        """Return the support of a claim by each passage, in [0, 1]: by reranker, or by vectors."""
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

    def _search(self, view: MemoryView, request: _ModeSearch, aim: Aim | None) -> Retrieval:
        text, options = (request.query, ()) if aim is None else (aim.text, aim.options)
        segment = None if request.focus is None else self._segment(view, request.focus)
        clips = (
            frozenset((segment.video, clip) for clip in segment.clips) if segment else frozenset()
        )
        whole = replace(self._preparation.context(view, text, options, clips), query=request.query)
        limits = {"unloaded": whole.encoders.missing, "selected": whole.share < 1}
        if aim is None:
            return self._in_mode(whole, request, segment).model_copy(update=limits)
        context = whole.about(aim.letters)
        ordinary = partial(self._with_aim, context, request, segment, aim.moments)
        if places := self._whereabouts(view, request, context, aim):
            result, limits["selected"] = places, False
        elif not aim.moments:
            return self._in_mode(whole, request, segment).model_copy(update=limits)
        elif not (aim.structure and context.relevance) or not whole.may_read_all:
            plain = aim.model_copy(update={"structure": None})
            each = self._each_video(view, request, plain) if request.is_wide else ()
            result = quoted_by_video(ordinary(), each)
        else:
            each = self._each_video(view, request, aim)
            result = answered_by_video(aim.structure, each) or quoted_by_video(
                structural(context, aim.structure, request.mode, ordinary), each
            )
        scores, scale = weigh_evidence(whole, result.evidence), temperature(whole)
        return result.model_copy(update={"weighed": scores, "temperature": scale, **limits})

    def _whereabouts(
        self, view: MemoryView, request: _ModeSearch, context: QueryContext, aim: Aim
    ) -> Retrieval | None:
        """Answer where somebody was last seen; None for any other question."""

        def look(there: MemoryView, span: TimeSpan) -> Retrieval:
            at_time = replace(request, mode=Mode.KEYFRAME, focus=None, span=span)
            return self._search(there, at_time, None)

        found = where_last_seen(self._store, view, aim.structure, context.people, look)
        return found and found.model_copy(update={"mode": request.mode})

    def _each_video(self, view: MemoryView, request: _ModeSearch, aim: Aim) -> list[VideoResult]:
        """Search each of a few videos by itself for an open question; none for any other."""
        if not 1 < len(view.scopes) <= FEW_VIDEOS or aim.options:
            return []
        with self._store.begin() as session:
            titles = video_titles(session)
        views = [view.model_copy(update={"scopes": (scope,)}) for scope in view.scopes]
        found = [(one.videos[0], self._search(one, request, aim)) for one in views]
        return [
            VideoResult(video, one_line(titles.get(video, "")), result) for video, result in found
        ]

    def _with_aim(
        self, context: QueryContext, request: _ModeSearch, segment: Segment | None, limit: int
    ) -> Retrieval:
        result = self._in_mode(context, request, segment)
        if request.mode is Mode.EVENT or (request.mode is Mode.VIDEO and result.focus is None):
            return self._with_best_lines(result, context, limit)
        return result

    def _in_mode(
        self, context: QueryContext, request: _ModeSearch, segment: Segment | None
    ) -> Retrieval:
        settings = self._settings.ask
        if request.mode in (Mode.EVENT, Mode.NEIGHBOR):
            edges_of = partial(self._edges, context)
            ranked = self._rank_segments(context)
            if request.mode is Mode.EVENT:
                return event(context, ranked, edges_of, settings.event_neighbours)
            return neighbor(context, ranked, request.focus, edges_of, settings.event_neighbours)
        if request.mode is Mode.KEYFRAME and request.span is not None:
            return self._keyframes_at(context, segment, request.span)
        context, segment = self._in_focus(context, segment)
        if request.mode is Mode.KEYFRAME:
            videos = self._keyframes_with_unseen(context, segment, request.seen)
            images, model = settings.images, self._image_model
            return keyframe(context, segment, videos, images, model, request.seen)
        return self._video(context, segment, request.seen)

    def _in_focus(
        self, context: QueryContext, segment: Segment | None
    ) -> tuple[QueryContext, Segment | None]:
        """Return the segment in focus, else the best one, and a context that has its clips."""
        if self._stage is AblationStage.ENTITY:
            return context, None
        if segment is not None:
            return context, segment
        ranked = self._rank_segments(context)
        best = ranked.best()
        if best is None:
            return context, None
        (segment,) = ranked.segments([best])
        return context.with_clips(_clips_of(segment)), segment

    def _segment(self, view: MemoryView, focus: int) -> Segment | None:
        segments = self._store.run_read_only(
            partial(read_segments, scopes=view.scopes, ids=[focus])
        )
        return segments.get(focus)

    def _rank_segments(self, context: QueryContext) -> RankedSegments:
        scopes, read = context.lines.scopes, self._store.run_read_only
        known: dict[int, Segment] = {}

        def read_texts(ids: Sequence[int]) -> Mapping[int, str]:
            return read(partial(segment_texts, scopes=scopes, ids=ids))

        def read_more(ids: Sequence[int]) -> Mapping[int, Segment]:
            missing = [segment for segment in ids if segment not in known]
            if missing:
                known.update(read(partial(read_segments, scopes=scopes, ids=missing)))
            return known

        vector, parts = context.vectors.question, context.encoders.parts
        near = read(partial(segments_in_view, scopes=scopes, vector=vector, parts=parts))
        return rank_segments(context, near, read_texts, read_more)

    def _edges(self, context: QueryContext, segment: Segment) -> Sequence[Edge]:
        if Mode.NEIGHBOR not in self._stage.modes:
            return ()
        scope = context.scope(segment.video)
        return self._store.run_read_only(partial(edges_of_segment, scope=scope, segment=segment.id))

    def _video(
        self, context: QueryContext, segment: Segment | None, seen: frozenset[str]
    ) -> Retrieval:
        """Return lines that mention the people in the query, else the lines of the best clips."""
        settings = self._settings.ask
        people = context.people.named_in(context.query) if context.relevance else ()
        if people:
            tags = {person.video: set[str]() for person in people}
            for person in people:
                tags[person.video] |= set(person.tags)
            shown = {int(ref[1:]) for ref in seen if ref.startswith("m")}
            for where in (segment, None) if segment else (None,):
                mentions = self._mentions(context, tags, where, len(shown))
                fresh = [mention for mention in mentions if mention[0] not in shown]
                if fresh:
                    more = context.with_clips([clip for _, clip in fresh])
                    wanted = settings.character_memories
                    return about_people(more, segment, people, [i for i, _ in fresh], wanted)
        return video(context, segment, seen, settings)

    def _mentions(
        self,
        context: QueryContext,
        tags: Mapping[str, set[str]],
        where: Segment | None,
        shown: int,
    ) -> list[tuple[int, tuple[str, int]]]:
        """Return (id, (video, clip)) of the lines that mention people, nearest first."""
        scopes = context.lines.scopes
        wanted = dict(tags) if where is None else {where.video: tags.get(where.video, set())}
        clips = None if where is None else where.clips
        mentions = self._store.run_read_only(
            lambda connection: lines_mentioning(
                connection,
                scopes,
                wanted,
                context.vectors.question,
                MENTIONS + shown,
                clips,
                context.encoders.parts,
            )
        )
        return [(line.id, (scopes[line.video].video, line.clip)) for line in mentions]

    def _with_best_lines(self, result: Retrieval, context: QueryContext, limit: int) -> Retrieval:
        """Append the best lines of the whole view to the evidence of a search.

        If only one of the two is close, the other is left out; but for questions with options the
        best lines are always appended, since options are compared by them.
        """
        if context.relevance is None or not limit:
            return result
        question = context.question
        reranker = None if question.options else self._tools.reranker
        best = best_lines(context.candidates, question, context.relevance, limit, reranker)
        ranked = add_strength(best, self._confirmation_counts(context, best))
        reread = best_probability(context.lines, question, [m.line for m in ranked[:1]], reranker)
        lines = context.evidence(ranked, reread)
        far = nothing_close(lines, context.candidates.view_lines)
        extract = None if question.options or far else self._extract(context, ranked[0], lines[0])
        of_mode = () if result.nothing_close and not far else result.evidence
        more = () if far and not result.nothing_close and not question.options else lines
        known = {e.ref for e in of_mode}
        evidence = (*of_mode, *(e for e in more if e.ref not in known))
        return result.model_copy(
            update={
                "evidence": (*evidence, *quote_evidence(extract, evidence)),
                "nothing_close": result.nothing_close and far,
                "extract": extract,
            }
        )

    def _confirmation_counts(
        self, context: QueryContext, ranked: Sequence[RankedLine]
    ) -> dict[int, int]:
        """Return how often the facts of lines were confirmed as of the view, by line."""
        arrays = context.lines.arrays
        ids_by_scope: dict[int, dict[int, int]] = {}
        for line in ranked:
            lines_by_id = ids_by_scope.setdefault(int(arrays.video[line.line]), {})
            lines_by_id[int(arrays.id[line.line])] = line.line
        confirmations: dict[int, int] = {}
        for number, ids in ids_by_scope.items():
            as_of = context.lines.scopes[number].last_clip
            counts = self._store.run_read_only(partial(strengths, memory_ids=[*ids], as_of=as_of))
            confirmations |= {ids[memory]: count for memory, count in counts.items()}
        return confirmations

    def _extract(self, context: QueryContext, best: RankedLine, evidence: Evidence) -> Extract:
        text, reranker = context.question.text, self._tools.reranker
        score = score_by_words(text) if reranker is None else score_by_reranker(text, reranker)
        names = context.people.names(evidence.video)
        lines, line = self._lines_around(context, best.line)
        return extract(lines, line, score, names, evidence.score)

    def _lines_around(self, context: QueryContext, line: int) -> tuple[LineSet, int]:
        """Return the lines of a line's clip and its neighbours, and the line's number in them."""
        lines = context.lines
        if context.small:
            return lines, line
        video_number, clip = int(lines.arrays.video[line]), int(lines.arrays.clip[line])
        clips = [(video_number, neighbour) for neighbour in range(max(0, clip - 1), clip + 2)]
        size = lines.arrays.vectors.shape[1]
        arrays = self._store.run_read_only(
            lambda connection: lines_of_clips(connection, lines.scopes, clips, size, lines.parts)
        )
        nearby = LineSet(lines.scopes, arrays, lines.read, lines.parts)
        return nearby, int(np.flatnonzero(arrays.id == lines.arrays.id[line])[0])

    def _keyframes(self, context: QueryContext, focus: Segment | None) -> list[VideoKeyframes]:
        if focus is not None:
            return [self._keyframes_of(context, context.scope(focus.video), focus.clips)]
        scopes, lines = context.lines.scopes, context.lines
        if context.small:
            # Clips without lines have keyframes too.
            return [
                self._keyframes_of(context, scope, range(scope.last_clip + 1)) for scope in scopes
            ]
        return [
            self._keyframes_of(context, scope, lines.cell_clip[lines.cell_video == number].tolist())
            for number, scope in enumerate(lines.scopes)
        ]

    def _keyframes_with_unseen(
        self, context: QueryContext, focus: Segment | None, seen: frozenset[str]
    ) -> list[VideoKeyframes]:
        """Return the keyframes in focus; all in view once too few of them were not shown yet."""
        videos = self._keyframes(context, focus)
        refs = {f"k{frame.id}" for keyframes in videos for frame in keyframes.contents.frames}
        if focus is None or not refs & seen or len(refs - seen) >= self._settings.ask.images:
            return videos
        return self._keyframes(context, None)

    def _keyframes_at(
        self, context: QueryContext, segment: Segment | None, span: TimeSpan
    ) -> Retrieval:
        """Return the images of a time of the video in focus, or of the only one in view.

        Raises:
            InputError: It is not clear which video is meant, or nothing is in view there.
        """
        scopes = context.view.scopes
        if segment is None and len(scopes) > 1:
            raise InputError("a time is a video's own: search for the video in mode event first")
        scope = scopes[0] if segment is None else context.scope(segment.video)
        ask, watch = self._settings.ask, self._settings.watch
        look = look_at(self._store, watch, scope, span, ask.images)
        nearby = context.with_clips([(scope.video, clip) for clip in look.clips])
        keyframes = self._keyframes_of(nearby, scope, look.clips)
        return keyframes_at(nearby, segment, keyframes, look)

    def _keyframes_of(
        self, context: QueryContext, scope: Scope, clips: Sequence[int]
    ) -> VideoKeyframes:
        contents = self._store.run_read_only(partial(clip_contents, scope=scope, clips=clips))
        image_cosines = self._image_cosines(context, contents.frames)
        return VideoKeyframes(
            scope.video,
            contents,
            image_cosines,
            self._description_cosines(context, contents.frames),
        )

    def _description_cosines(
        self, context: QueryContext, frames: Sequence[KeyframeOnClip]
    ) -> dict[int, float]:
        """Return cosines of the question with the descriptions that its encoders embedded."""
        ids = [frame.id for frame in frames if frame.description]
        question, encoders = context.vectors.question, context.encoders
        rows = self._store.run_read_only(partial(description_vectors, frames=ids)) if ids else {}
        cosines = {
            frame: encoders.cosine(question, vector, name) for frame, (vector, name) in rows.items()
        }
        return {frame: cosine for frame, cosine in cosines.items() if cosine is not None}

    @property
    def _image_model(self) -> ImageModel | None:
        encoder = self._image_encoders.own
        return None if encoder is None else ImageModel(encoder.name, encoder.close)

    def _image_cosines(
        self, context: QueryContext, frames: Sequence[KeyframeOnClip]
    ) -> dict[int, float]:
        """Return cosines of the query with keyframes, of those whose encoder can be loaded."""
        if self._image_encoders.own is None:
            return {}
        ids, query = [frame.id for frame in frames], self._image_encoders.query(context.query)
        vectors = self._store.run_read_only(partial(frame_vectors, frames=ids))
        cosines = {frame: query.cosine(vector, name) for frame, (vector, name) in vectors.items()}
        return {frame: cosine for frame, cosine in cosines.items() if cosine is not None}


@dataclass(frozen=True)
class _ModeSearch:
    """The input of one search: mode, query, segment in focus, refs shown already, and a time."""

    mode: Mode
    query: str
    focus: int | None
    seen: frozenset[str]
    span: TimeSpan | None = None

    @property
    def is_wide(self) -> bool:
        """Whether lines of the whole view are searched."""
        return self.mode is Mode.EVENT or (self.mode is Mode.VIDEO and self.focus is None)


def _clips_of(segment: Segment) -> list[tuple[str, int]]:
    return [(segment.video, clip) for clip in segment.clips]
