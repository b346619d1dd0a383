"""WorldMM's searches of its episodic and semantic memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from agent.strategy import ToolUse
from domain.asking import Evidence
from domain.errors import InputError
from domain.memories import MemoryView, Scope
from domain.moments import Retrieval, ShownImage
from domain.sentences import Triple
from domain.time import TimeSpan
from models.ports import ImageEncoder, TextEmbedder, embed_queries
from retrieval.built_views import check_built
from retrieval.chapters import caption_sentences
from retrieval.keyframe_mode import image_evidence
from retrieval.people_in_query import view_people, with_current_names
from retrieval.query_context import TEMPERATURE
from retrieval.relevance import CosineScale, closeness_threshold, cosine_scale
from store.database import Store
from store.queries.characters import people_in_view
from strategies.asked import Asked, Pieces, ask, joined, quote_nearest
from strategies.kept_frames import FrameReader, spread_frames
from strategies.worldmm.choice import (
    Scored,
    choose_across_scales,
    choose_captions,
    keep_triples,
)
from strategies.worldmm.graph import (
    ScaleView,
    WorldIndexes,
    nearest,
    search_scale,
    search_semantic,
)
from strategies.worldmm.replies import find_span, names_only_time
from strategies.worldmm.settings import (
    GRAPH,
    SCALES,
    MemoryArguments,
    VisualArguments,
    WorldMemorySettings,
)

if TYPE_CHECKING:
    from agent.strategy import RunTool
    from models.toolbox import Toolbox

Texts = dict[str, str]
Found = tuple[Sequence[Evidence], Pieces, str]
"""What a search found, what of its memory options are weighed by, and what it says of it."""


class _Search:
    """What both searches share.

    Args:
        text: the model that the memory was built with.
        indexes: the memory of videos.
    """

    name = ""

    def __init__(
        self, store: Store, text: TextEmbedder, indexes: WorldIndexes, settings: WorldMemorySettings
    ) -> None:
        self._store, self._text = store, text
        self._indexes, self._settings = indexes, settings

    def __call__(self, view: MemoryView, arguments: MemoryArguments, use: ToolUse) -> Retrieval:
        """Return what is found, best first, scored by option if there are any."""
        for video in view.videos:
            check_built(video, self._indexes.of(video).encoder, self._text.name)
        with self._store.begin() as session:
            people = view_people(people_in_view(session, view.scopes))
        asked = ask(self._text, arguments.query, arguments.options, view, people)
        found, pieces, reason = self._found(view, asked, use)
        evidence = tuple(piece for piece in found if piece.ref not in use.seen)
        best = max((piece.score for piece in evidence), default=0.0)
        # A language model judges itself what is close enough to answer from.
        close = bool(evidence) and use.model is not None
        return Retrieval(
            mode=self.name,
            query=asked.question.text,
            evidence=evidence,
            nothing_close=not close and best < closeness_threshold(max(1, len(evidence))),
            searched=reason,
            weighed=()
            if pieces is None
            else asked.supported(pieces).weighed({one.ref for one in evidence}),
            temperature=TEMPERATURE,
            quotes=()
            if arguments.options
            else quote_nearest(
                self._text,
                self._cosine_scale,
                asked.vector,
                [(piece, caption_sentences(piece.text) or [piece.text]) for piece in evidence],
            ),
        )

    def _found(self, view: MemoryView, asked: Asked, use: ToolUse) -> Found:
        raise NotImplementedError

    @cached_property
    def _cosine_scale(self) -> CosineScale:
        return cosine_scale(self._text)


@dataclass(frozen=True, eq=False)
class _Scale:
    """A scale of a video that is searched.

    ``place`` is 0 for the finest; ``names`` are people's current ones by tag.
    """

    scope: Scope
    place: int
    view: ScaleView
    names: Texts

    def triple(self, number: int) -> Triple:
        one = self.view.triples[number]
        return Triple(
            subject=with_current_names(one.subject.name, self.names),
            predicate=one.predicate,
            object=with_current_names(one.object.name, self.names),
        )


class EpisodicSearch(_Search):
    """Finds captions of all scales by their graphs, and keeps those that fit the question.

    Without a language model, the finest caption is kept besides that has most of the words of each
    option and of the question.
    """

    name = "episodic"

    def _found(self, view: MemoryView, asked: Asked, use: ToolUse) -> Found:
        scales = [scale for scope in view.scopes for scale in self._scales(scope, asked, use)]
        finest = joined([scale.view.pieces for scale in scales if not scale.place])
        most = self._settings.captions_kept
        if use.model is None:
            chosen, reason = choose_across_scales(
                asked.question.text, self._by_scale(scales, asked, use), most
            )
            best = asked.supported(finest).best()
            # Add the finest captions that support an option best, by their refs.
            known = {
                ref: self._piece(scale, number, asked)
                for scale in scales
                for number, ref in enumerate(scale.view.pieces.refs)
                if ref in best
            }
            with_options = list(
                ({one.ref: one for one in chosen} | {ref: known[ref] for ref in best}).values()
            )
            return with_options, finest, reason
        if GRAPH in use.without:
            kept: Collection[Triple] = ()
            why = "entities and triples are switched off"
        else:
            matched = [
                scale.triple(one.number)
                for scale in scales
                for one in nearest(
                    scale.view.index.triple_vectors @ asked.vector, self._settings.matched_triples
                )
            ]
            kept, why = keep_triples(use.model, asked.question.text, matched)
        by_scale = self._by_scale(scales, asked, use, frozenset(kept))
        fresh = [[one for one in found if one[0].ref not in use.seen] for found in by_scale]
        pieces = [one for found in fresh for one, _ in found]
        taken, how = choose_captions(use.model, asked.question.text, pieces, most)
        if taken is None:
            chosen, reason = choose_across_scales(asked.question.text, fresh, most)
            return chosen, finest, f"{why}; {how}; {reason}"
        return taken, finest, f"{why}; {how}"

    def _scales(self, scope: Scope, asked: Asked, use: ToolUse) -> Iterator[_Scale]:
        index, names = self._indexes.of(scope.video), asked.question.people.names(scope.video)
        levels = index.levels()[: len(self._settings.captions)]
        for place, level in enumerate(levels[:1] if SCALES in use.without else levels):
            view = index.scale(level, scope.last_clip)
            yield _Scale(scope, place, view, names)

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
            words=asked.matches(scale.view.pieces.matches) if use.model is None else None,
            graph=GRAPH not in use.without,
        )
        for one in found.captions:
            caption = self._piece(scale, one.number, asked)
            yield caption, one.score if use.model is None else caption.score

    def _piece(self, scale: _Scale, number: int, asked: Asked) -> Evidence:
        node = scale.view.nodes[number]
        return Evidence(
            ref=node.ref,
            video=scale.scope.video,
            span=node.span,
            text=with_current_names(node.text, scale.names),
            score=self._cosine_scale.nearness(
                float(asked.vector @ scale.view.index.caption_vectors[number])
            ),
        )


class SemanticSearch(_Search):
    """Finds what lasts: habits, relations, attributes."""

    name = "semantic"

    def _found(
        self,
        view: MemoryView,
        asked: Asked,
        use: ToolUse,  # noqa: ARG002 - the policy does not use this tool where it is switched off
    ) -> Found:
        found = [one for scope in view.scopes for one in self._of_video(scope, asked)]
        found.sort(key=lambda piece: -piece.score)
        kept = found[: self._settings.semantic_triples]
        # Options are not weighed by what lasts: it hides the captions that answer.
        return kept, joined([]), f"{len(kept)} of what recurs or lasts"

    def _of_video(self, scope: Scope, asked: Asked) -> Iterator[Evidence]:
        index, names = self._indexes.of(scope.video), asked.question.people.names(scope.video)
        searched, relations = index.semantic(scope.last_clip)
        for one in search_semantic(searched, asked.vector, self._settings):
            relation = relations[one.number]
            text, times = relation.text, len(relation.evidence)
            yield Evidence(
                ref=f"r{relation.id}",
                video=scope.video,
                span=relation.span,
                text=with_current_names(f"{text} ({times} times)" if times > 1 else text, names),
                score=self._cosine_scale.nearness(
                    float(asked.vector @ searched.vectors[one.number])
                ),
            )


# WorldMM's search of its visual memory: the frames that its keeper kept, by words or by time.

BY_TIME = "name a stretch of time, as in 12:30 - 12:50, and its images are found"


class VisualSearch:
    """Finds kept frames by what they show, or those of a time, evenly spread over it.

    Args:
        frames: those that were kept for this strategy.
        text: the text model, which compares what was recognised on frames with the query.
        encoder: returns the image-text model, if the profile has one.
        most: frames of a search at most, as many as a model may be shown at once.
    """

    def __init__(
        self,
        frames: FrameReader,
        text: TextEmbedder,
        encoder: Callable[[], ImageEncoder | None],
        settings: WorldMemorySettings,
        most: int,
    ) -> None:
        self._frames, self._text, self._encoder = frames, text, encoder
        self._around_ms, self._most = settings.segment_ms, min(most, settings.frames)

    def __call__(self, view: MemoryView, arguments: VisualArguments, use: ToolUse) -> Retrieval:
        """Return the frames of the time that the query names; without one, those it describes.

        Raises:
            InputError: no frame was kept, or the profile or the frames have no vectors for words.
        """
        if not self._frames.any_of(view):
            raise InputError(
                f"no frame of {', '.join(view.videos)} was kept for this strategy by then: homer "
                "build keeps them where the video's file is still there"
            )
        span = find_span(arguments.query)
        if span is None:
            encoder = self._encoder()
            if encoder is None:
                raise InputError(f"this profile has no image-text model: {BY_TIME}")
            most = self._most + len(use.seen)
            found = self._frames.nearest(view, arguments.query, most)
            if not found:
                raise InputError(
                    f"the frames were kept without {encoder.name} (homer reembed makes vectors of "
                    f"it): {BY_TIME}"
                )
            nearest_frames = [one for one in found if one.frame.ref not in use.seen][: self._most]
            images = self._frames.show(
                [one.frame for one in nearest_frames], [one.score for one in nearest_frames]
            )
            close = bool(nearest_frames) and (
                use.model is not None or nearest_frames[0].score >= encoder.close
            )
            reason = f"kept frames by their likeness under {encoder.name}"
            return _retrieval(arguments.query, images, reason, close=close)
        # Frames of a time in its order; those around an instant.
        query = arguments.query
        if len(view.scopes) > 1:
            raise InputError("a time is a video's own: ask about one video")
        around = 0 if span.length_ms else self._around_ms
        wide = TimeSpan.of(max(0, span.start_ms - around), span.end_ms + around + 1)
        frames = self._frames.within(view.scopes[0], wide)
        fresh = [frame for frame in frames if frame.ref not in use.seen]
        images = self._compared(query, self._frames.show(spread_frames(fresh, self._most)))
        best = max((image.score for image in images), default=0.0)
        asked_for = use.model is not None or names_only_time(query)
        close = asked_for or best >= closeness_threshold(max(1, len(images)))
        reason = f"{len(images)} of {len(frames)} kept frames of {wide}"
        return _retrieval(query, images, reason, close=bool(images) and close)

    def _compared(self, query: str, images: Sequence[ShownImage]) -> tuple[ShownImage, ...]:
        """Return images scored by how near what was recognised on them is to the query.

        All are what a query asks for that is nothing but a time.
        """
        if names_only_time(query):
            return tuple(image.model_copy(update={"score": 1.0}) for image in images)
        if not images:
            return ()
        asked, *texts = embed_queries(self._text, [query, *(one.description for one in images)])
        near = [self._scale.nearness(float(asked @ text)) for text in texts]
        pairs = zip(images, near, strict=True)
        return tuple(image.model_copy(update={"score": score}) for image, score in pairs)

    @cached_property
    def _scale(self) -> CosineScale:
        return cosine_scale(self._text)


def _retrieval(
    query: str, images: tuple[ShownImage, ...], reason: str, *, close: bool
) -> Retrieval:
    return Retrieval(
        mode="visual",
        query=query,
        evidence=tuple(image_evidence(image) for image in images),
        images=images,
        nothing_close=not close,
        searched=reason,
    )


# WorldMM's tools, ready to be used; imports scipy, which takes half a second.


def opened_tools(
    store: Store, toolbox: Toolbox, name: str, settings: WorldMemorySettings
) -> dict[str, RunTool]:
    """Open the searches of a strategy: captions and what lasts share an index."""
    indexes = WorldIndexes(store, name, settings)
    frames, most = FrameReader(store, toolbox, name), toolbox.profile.settings.ask.images
    return {
        "episodic": EpisodicSearch(store, toolbox.text, indexes, settings),
        "semantic": SemanticSearch(store, toolbox.text, indexes, settings),
        "visual": VisualSearch(frames, toolbox.text, lambda: toolbox.images, settings, most),
    }
