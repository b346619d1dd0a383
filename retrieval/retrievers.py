"""The four search modes and the ranking of lines, over a view of a store's memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cache, partial

from domain.asking import STRUCTURE, TOLD, Aim, Mode, VideoQuotes, answering
from domain.errors import InputError
from domain.evaluation_options import AblationStage
from domain.memories import Edge, MemoryView, Scope, Segment
from domain.moments import Retrieval, ShownImage
from domain.settings import Settings
from domain.time import TimeSpan
from domain.words import make_storable, one_line
from models.ports import ImageEncoder
from people.characters import replace_names
from retrieval import modes
from retrieval.chapters import Word
from retrieval.heuristics.questions import Asks, StructureQuestions, without_telling
from retrieval.keyframe_mode import VideoKeyframes, image_evidence, keyframe, keyframes_at, look_at
from retrieval.lines import Floats
from retrieval.preparation import SearchModels, SearchPreparation, close_pictures
from retrieval.query_context import (
    ModeSearch,
    QueryContext,
    nothing_close,
    temperature,
    weigh_evidence,
)
from retrieval.quotes_and_citations import Quoted, QuoteSearch, lines_around, lines_beside, quoted
from retrieval.ranking import add_strength, best_lines
from retrieval.structure import last_seen
from store.database import Store
from store.queries.clips import KeyframeOnClip, clip_contents, frame_vectors
from store.queries.memories import strengths
from store.queries.people_in_view import lines_mentioning
from store.queries.search import edges_of_segment, read_segments, segment_texts, segments_in_view
from store.queries.videos import video_titles
from telemetry import tracing

SUPPORT_DIGITS = 4  # Of a support score.
FEW_VIDEOS = 5
"""A question over more videos is answered from all of them as one."""
MOST_PERSONS = 3
"""The most people of one name that are told of."""
SHOWN_IMAGES = 2
"""Images that answer a question without options, or are found beside lines, at most."""
PICTURE = "A picture fits these words: "
"""What is said of such an image, before what was recognised on it."""
SEEN = 0.5
"""The least score of an image that is close by an image-text model, beside lines."""
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
        self._stage = AblationStage.WHOLE
        self._word: Word | None = None
        # One for all that are restricted: its examples are embedded once.
        self._structure_questions = cache(
            lambda: StructureQuestions(toolbox.text, self._preparation.cosine_scale)
        )

    def restricted_to(self, stage: AblationStage, word: Word | None = None) -> Retrievers:
        """Return a search over part of the memory (the memory ablation of section 4).

        Without event nodes VIDEO searches all clips in view; without edges EVENT has no neighbours.
        ``word`` words chapters, if anything does.
        """
        restricted = copy(self)
        restricted._stage, restricted._word = stage, word
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
            request = ModeSearch(mode, make_storable(query), focus, seen, span)
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

    def _search(self, view: MemoryView, request: ModeSearch, aim: Aim | None) -> Retrieval:
        text, options = (request.query, ()) if aim is None else (aim.text, aim.options)
        segment = (
            None
            if request.focus is None
            else self._store.run_read_only(
                partial(read_segments, scopes=view.scopes, ids=[request.focus])
            ).get(request.focus)
        )
        clips = frozenset(segment.places if segment else ())
        whole = replace(self._preparation.context(view, text, options, clips), query=request.query)
        context = whole.about(aim.letters) if aim else whole
        result = self._in_mode(context, request, segment)
        wide = request.mode is Mode.EVENT or (request.mode is Mode.VIDEO and result.focus is None)
        if aim and aim.moments and wide:
            result = self._with_best_lines(result, context, aim)
        if aim is None and request.focus is None and request.mode is Mode.VIDEO:
            pictures = self._pictures(view, request, result, whole.images)
            lines = () if result.nothing_close and pictures else result.evidence
            far = result.nothing_close and not pictures
            found = {"evidence": (*lines, *map(image_evidence, pictures)), "images": pictures}
            result = result.model_copy(update={**found, "nothing_close": far})
        if aim and not options and request.mode is not Mode.NEIGHBOR:
            result = self._with_quotes(result, context, request, aim)
        scores, scale = weigh_evidence(whole, result.evidence), temperature(whole)
        limits = {"selected": whole.share < 1, "unseen": whole.images is None}
        return result.model_copy(update={"weighed": scores, "temperature": scale, **limits})

    def _pictures(
        self, view: MemoryView, request: ModeSearch, found: Retrieval, model: ImageEncoder | None
    ) -> tuple[ShownImage, ...]:
        """Return images close by the image-text model: of a search for images, or of the view."""
        if model is None:
            return ()
        if request.mode is not Mode.KEYFRAME:
            found = self._search(view, replace(request, mode=Mode.KEYFRAME, focus=None), None)
        # Images without a vector are ranked by words, on another scale.
        ids = [one.id for one in found.images if one.kind == "k" and one.score >= model.close]
        compared = self._store.run_read_only(partial(frame_vectors, frames=ids)) if ids else {}
        close = () if found.nothing_close else found.images
        shown = [one for one in close if one.kind == "k" and one.id in compared][:SHOWN_IMAGES]
        return tuple(one.model_copy(update={"score": max(SEEN, one.score)}) for one in shown)

    def _with_quotes(
        self, result: Retrieval, context: QueryContext, request: ModeSearch, aim: Aim
    ) -> Retrieval:
        """Add sentences on the video's structure that are asked for, and quotes that may answer.

        Over a few videos, each is searched by itself. A language model, which reads the evidence
        itself, is told of structure only.
        """
        found, by_video, scopes = list[Quoted](), list[VideoQuotes](), context.view.scopes
        quotes_wanted = (
            aim.quotes and bool(aim.moments) and request.mode in (Mode.EVENT, Mode.VIDEO)
        )
        asks = {kind for text in aim.asked if (kind := self._asks(context, text))}
        if Asks.LAST_SEEN in asks and (last := self._last_seen(context, request)):
            found, images = last
            result = result.model_copy(update={"images": images})
        elif 1 < len(scopes) <= FEW_VIDEOS and quotes_wanted and request.focus is None:
            with self._store.begin() as session:
                titles = video_titles(session)
            for scope in scopes:
                view = context.view.model_copy(update={"scopes": (scope,)})
                each = self._search(view, request, aim)
                title = one_line(titles.get(scope.video, ""))
                quotes = answering(each.quotes)
                by_video.append(VideoQuotes(video=scope.video, title=title, quotes=quotes))
                pieces = {piece.ref: piece for piece in each.evidence}
                found += [Quoted(one, tuple(pieces[ref] for ref in one.refs)) for one in quotes]
        elif context.relevance is not None:
            around, tools = partial(lines_around, self._store), self._tools
            search = QuoteSearch(tools.text, tools.reranker, tools.sentences, around, self._word)
            if len(scopes) == 1 and context.may_read_all and aim.asked:
                about = partial(self._preparation.context, context.view)
                found += search.structure(context, asks, about)
            if quotes_wanted and request.mode is Mode.VIDEO and result.focus:
                looked = context.with_clips(result.focus.places)
                found += search.quotes(looked, looked.cells_of(result.focus))
            elif quotes_wanted:
                found += search.quotes(context, read=Asks.READ in asks)
        near = bool(answering([one.quote for one in found]))
        if request.mode is Mode.KEYFRAME or (quotes_wanted and not near):
            pictures = self._pictures(context.view, request, result, context.images)
            told = "" if request.mode is Mode.KEYFRAME else PICTURE
            shown = map(image_evidence, pictures)
            found += [quoted(f"{told}{one.text}", [one], "seen", one.score) for one in shown]
            known = {image.ref for image in result.images}
            more = [image for image in pictures if image.ref not in known]
            result = result.model_copy(update={"images": (*result.images, *more)})
            near = near or bool(pictures)
        cited = {piece.ref: piece for one in found for piece in one.evidence}
        others = () if near and result.nothing_close else result.evidence
        return result.model_copy(
            update={
                "quotes": () if by_video else tuple(one.quote for one in found),
                "by_video": tuple(by_video),
                "evidence": (*cited.values(), *(e for e in others if e.ref not in cited)),
                "nothing_close": not near
                if aim.moments and aim.quotes
                else result.nothing_close and not near,
            }
        )

    def _asks(self, context: QueryContext, text: str) -> Asks | None:
        """Return what a text asks of structure; names of people are no part of what it asks."""
        people = context.people.named_in(text)
        names = {one.character.name: "she" for one in people if one.character.name}
        return self._structure_questions().of(replace_names(names, text))

    def _last_seen(
        self, context: QueryContext, request: ModeSearch
    ) -> tuple[list[Quoted], tuple[ShownImage, ...]] | None:
        """Tell where the people that the query names were last seen, with images of that time."""
        people = context.people.only_named_in(without_telling(context.query))
        found, images = list[Quoted](), list[ShownImage]()
        for place in last_seen(self._store, context.view.scopes, people)[:MOST_PERSONS]:
            at_time = replace(request, mode=Mode.KEYFRAME, focus=None, span=place.span)
            there = context.view.model_copy(update={"scopes": (place.scope,)})
            shown = self._search(there, at_time, None)
            best = max((image.score for image in shown.images), default=0.0)
            nearest = [image for image in shown.images if image.score == best]
            pieces = [e for e in shown.evidence if e.ref in {image.ref for image in nearest}]
            if pieces:
                images += nearest
                found.append(quoted(place.text, pieces, STRUCTURE, TOLD))
        return (found, tuple(images)) if found else None

    def _in_mode(
        self, context: QueryContext, request: ModeSearch, segment: Segment | None
    ) -> Retrieval:
        settings = self._settings.ask
        if request.mode in (Mode.EVENT, Mode.NEIGHBOR):
            edges_of = partial(self._edges, context)
            ranked = self._rank_segments(context)
            if request.mode is Mode.EVENT:
                return modes.event(context, ranked, edges_of, settings.event_neighbours)
            return modes.neighbor(
                context, ranked, request.focus, edges_of, settings.event_neighbours
            )
        if request.mode is Mode.KEYFRAME and request.span is not None:
            # The images of a time of the video in focus, or of the only one in view.
            scopes = context.view.scopes
            if segment is None and len(scopes) > 1:
                raise InputError(
                    "a time is a video's own: search for the video in mode event first"
                )
            scope = scopes[0] if segment is None else context.scope(segment.video)
            ask, watch = self._settings.ask, self._settings.watch
            look = look_at(self._store, watch, scope, request.span, ask.images)
            nearby = context.with_clips([(scope.video, clip) for clip in look.clips])
            keyframes = self._keyframes_of(nearby, scope, look.clips)
            return keyframes_at(nearby, segment, keyframes, look)
        context, segment = self._in_focus(context, segment)
        if request.mode is Mode.KEYFRAME:
            videos = self._keyframes_with_unseen(context, segment, request.seen)
            if request.focus is None and (near := self._clips_with_pictures(context)):
                near += segment.places if segment else []
                context, segment = context.with_clips(near), None
                videos = [
                    self._keyframes_of(context, scope, [clip for one, clip in near if one == name])
                    for scope in context.lines.scopes
                    if (name := scope.video) in dict(near)
                ]
            images = settings.images
            return keyframe(context, segment, videos, images, context.images, request.seen)
        settings = self._settings.ask
        people = context.people.named_in(context.query) if context.relevance else ()
        if people:
            tags = {person.video: set[str]() for person in people}
            for person in people:
                tags[person.video] |= set(person.tags)
            shown = {int(ref[1:]) for ref in request.seen if ref.startswith("m")}
            for where in (segment, None) if segment else (None,):
                mentions = self._mentions(context, tags, where, len(shown))
                fresh = [mention for mention in mentions if mention[0] not in shown]
                if fresh:
                    more = context.with_clips([clip for _, clip in fresh])
                    wanted = settings.character_memories
                    return modes.about_people(more, segment, people, [i for i, _ in fresh], wanted)
        return modes.video(context, segment, request.seen, settings)

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
        return context.with_clips(segment.places), segment

    def _rank_segments(self, context: QueryContext) -> modes.RankedSegments:
        scopes, read = context.lines.scopes, self._store.run_read_only
        known: dict[int, Segment] = {}

        def read_texts(ids: Sequence[int]) -> Mapping[int, str]:
            return read(partial(segment_texts, scopes=scopes, ids=ids))

        def read_more(ids: Sequence[int]) -> Mapping[int, Segment]:
            missing = [segment for segment in ids if segment not in known]
            if missing:
                known.update(read(partial(read_segments, scopes=scopes, ids=missing)))
            return known

        near = read(partial(segments_in_view, scopes=scopes, vector=context.vectors.question))
        return modes.rank_segments(context, near, read_texts, read_more)

    def _edges(self, context: QueryContext, segment: Segment) -> Sequence[Edge]:
        if Mode.NEIGHBOR not in self._stage.modes:
            return ()
        scope = context.scope(segment.video)
        return self._store.run_read_only(partial(edges_of_segment, scope=scope, segment=segment.id))

    def _mentions(
        self, context: QueryContext, tags: Mapping[str, set[str]], where: Segment | None, shown: int
    ) -> list[tuple[int, tuple[str, int]]]:
        """Return (id, (video, clip)) of the lines that mention people, nearest first."""
        scopes = context.lines.scopes
        wanted = dict(tags) if where is None else {where.video: tags.get(where.video, set())}
        clips = None if where is None else where.clips
        mentions = self._store.run_read_only(
            lambda connection: lines_mentioning(
                connection, scopes, wanted, context.vectors.question, MENTIONS + shown, clips
            )
        )
        return [(line.id, (scopes[line.video].video, line.clip)) for line in mentions]

    def _with_best_lines(self, result: Retrieval, context: QueryContext, aim: Aim) -> Retrieval:
        """Append the best lines of the whole view to the evidence of a search."""
        # If only one of the two is close, rules are not shown the other; but options are compared
        # by the best lines, so these are always appended.
        if context.relevance is None:
            return result
        words = () if aim.quotes else sorted(context.words)
        best = best_lines(
            context.candidates, context.question, context.relevance, aim.moments, words
        )
        # How often the facts of lines were confirmed as of the view, by line.
        arrays = context.lines.arrays
        ids_by_scope = defaultdict[int, dict[int, int]](dict)
        for line in best:
            ids_by_scope[int(arrays.video[line.line])][int(arrays.id[line.line])] = line.line
        confirmations: dict[int, int] = {}
        for number, ids in ids_by_scope.items():
            as_of = context.lines.scopes[number].last_clip
            counts = self._store.run_read_only(partial(strengths, memory_ids=[*ids], as_of=as_of))
            confirmations |= {ids[memory]: count for memory, count in counts.items()}
        lines = context.evidence(add_strength(best, confirmations))
        far = nothing_close(lines, context.candidates.view_lines)
        if best and not aim.quotes:
            lines += lines_beside(self._store, context, best[0].line, lines[0].score)
            edges_of, most = partial(self._edges, context), self._settings.ask.event_neighbours
            result = modes.with_edges_of(self._store, context, result, best[0].line, edges_of, most)
        every = not aim.quotes or bool(context.question.options)
        of_mode = () if result.nothing_close and not (far or every) else result.evidence
        more = () if far and not result.nothing_close and not every else lines
        known = {e.ref for e in of_mode}
        return result.model_copy(
            update={
                "evidence": (*of_mode, *(e for e in more if e.ref not in known)),
                "nothing_close": result.nothing_close and far,
            }
        )

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

    def _keyframes_of(
        self, context: QueryContext, scope: Scope, clips: Sequence[int]
    ) -> VideoKeyframes:
        contents = self._store.run_read_only(partial(clip_contents, scope=scope, clips=clips))
        model, described = context.images, [f for f in contents.frames if f.description]
        shown = {} if model is None else self._cosines(contents.frames, model.text(context.query))
        return VideoKeyframes(
            scope.video,
            contents,
            shown,
            self._cosines(described, context.vectors.question, described=True),
        )

    def _cosines(
        self, frames: Sequence[KeyframeOnClip], query: Floats, *, described: bool = False
    ) -> dict[int, float]:
        """Return the cosines of a query with the vectors of keyframes that have one of its size."""
        read = partial(frame_vectors, frames=[frame.id for frame in frames], described=described)
        rows = self._store.run_read_only(read) if frames else {}
        return {
            frame: float(vector @ query)
            for frame, vector in rows.items()
            if vector.shape == query.shape
        }

    def _clips_with_pictures(self, context: QueryContext) -> list[tuple[str, int]]:
        """Return the clips of the images in view that show what the query says, best first."""
        model = context.images
        if model is None:
            return []
        scopes, most = context.lines.scopes, self._settings.ask.images
        vector = model.text(context.query)
        read = partial(close_pictures, scopes=scopes, model=model, vector=vector, limit=most)
        return [(one.video, one.frame.clip) for one in self._store.run_read_only(read)]
