"""WorldMM's search of its visual memory: the frames that its keeper kept, by words or by time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from agent.strategy import ToolUse
from domain.errors import InputError
from domain.memories import MemoryView
from domain.time import TimeSpan
from models.ports import ImageEncoder, TextEmbedder, embed_queries
from retrieval.closeness import CosineScale, closeness_threshold, cosine_scale
from retrieval.keyframe_mode import image_evidence
from retrieval.result import Retrieval, ShownImage
from strategies.kept_frames import FrameReader, spread_frames
from strategies.worldmm.arguments import VisualArguments
from strategies.worldmm.settings import WorldMemorySettings
from strategies.worldmm.times import find_span, names_only_time

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
            return self._by_words(view, arguments.query, use)
        return self._of_time(view, arguments.query, span, use)

    def _by_words(self, view: MemoryView, query: str, use: ToolUse) -> Retrieval:
        """Return the frames that are most alike to the query, best first."""
        encoder = self._encoder()
        if encoder is None:
            raise InputError(f"this profile has no image-text model: {BY_TIME}")
        most = self._most + len(use.seen)
        found = self._frames.nearest(view, query, most)
        if not found:
            raise InputError(
                f"the frames were kept without {encoder.name} (homer reembed makes vectors of it): "
                f"{BY_TIME}"
            )
        fresh = [one for one in found if one.frame.ref not in use.seen][: self._most]
        images = self._frames.show([one.frame for one in fresh], [one.score for one in fresh])
        close = bool(fresh) and (use.model is not None or fresh[0].score >= encoder.close)
        reason = f"kept frames by their likeness under {encoder.name}"
        return _retrieval(query, images, reason, close=close)

    def _of_time(self, view: MemoryView, query: str, span: TimeSpan, use: ToolUse) -> Retrieval:
        """Return frames of a time in its order; those around an instant.

        Raises:
            InputError: several videos are in view.
        """
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
