"""The frames that a strategy keeps, as its tools find, show and read them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from heapq import nlargest
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from domain.built import BuiltFrame
from domain.errors import BlobGone
from domain.memories import MemoryView, Scope
from domain.moments import ShownImage
from domain.people import escape_tags
from domain.time import TimeSpan
from domain.words import make_storable
from perception.images import LIKENESS, decode_image, likeness
from retrieval.keyframe_mode import describe_kept
from retrieval.people_in_query import names_as_of
from store.queries.clips import ClipContents, clip_contents
from store.queries.keyframes import (
    cited_kept,
    frames_in_scope,
    has_kept,
    vector_of_frame,
    vectors_of_frames,
)

if TYPE_CHECKING:
    from models.ports import Image, Thing, Vector
    from models.toolbox import Toolbox
    from store.database import Store

Kept = TypeVar("Kept")

LONGEST_READING = 400
"""Characters of what was read on a frame."""
TEXT = "text: "
"""Before the text that was read on a frame."""
REF = re.compile(r"f[1-9]\d{0,17}")


@dataclass(frozen=True)
class KeptFrame:
    """A kept frame with its video."""

    scope: Scope
    frame: BuiltFrame

    @property
    def ref(self) -> str:
        return f"f{self.frame.id}"


class ScoredFrame(NamedTuple):
    """A kept frame with its cosine to what was searched for."""

    frame: KeptFrame
    score: float


class FrameReader:
    """The kept frames of one strategy.

    Args:
        toolbox: the models that read frames.
        builder: the name under which the frames are kept.
    """

    def __init__(self, store: Store, toolbox: Toolbox, builder: str) -> None:
        self._store, self._toolbox, self._builder = store, toolbox, builder

    def any_of(self, view: MemoryView) -> bool:
        with self._store.begin() as session:
            return any(has_kept(session, scope, self._builder) for scope in view.scopes)

    def within(self, scope: Scope, span: TimeSpan | None = None) -> list[KeptFrame]:
        """Return the frames of a video, or of a span of it, in order of time."""
        with self._store.begin() as session:
            found = frames_in_scope(session, scope, self._builder, span)
        return [KeptFrame(scope, frame) for frame in found]

    def named(self, view: MemoryView, ref: str) -> KeptFrame | None:
        """Return the frame that a ref such as ``f12`` names; None if none in view has it."""
        if not REF.fullmatch(ref):
            return None
        for scope in view.scopes:
            with self._store.begin() as session:
                found = cited_kept(session, scope, [int(ref[1:])])
            if found and found[0].builder == self._builder:
                return KeptFrame(scope, found[0])
        return None

    def alike(self, view: MemoryView, example: KeptFrame, most: int) -> list[ScoredFrame]:
        """Return the frames that look most like one, best first, that one left out.

        Frames are compared by what made their vectors: an image-text model, or colours and edges.
        The example has a vector of one of them; those of others are made of its image.
        """
        with self._store.begin() as session:
            known = vector_of_frame(session, example.frame.id)
        if known is None:
            return []
        made_by, own = known

        @cache
        def vector_by(encoder: str) -> Vector | None:
            return own if encoder == made_by else self._encoded(example, encoder)

        def cosine(vector: Vector, encoder: str) -> float | None:
            wanted = vector_by(encoder)
            if wanted is None or wanted.shape != vector.shape:
                return None
            return float(vector @ wanted)

        found = self._nearest(view, cosine, most + 1)
        return [one for one in found if one.frame.ref != example.ref][:most]

    def _encoded(self, frame: KeptFrame, encoder: str) -> Vector | None:
        """Return the vector of a frame's image by a model; None if one of both is not there."""
        image = self.image(frame)
        if image is None:
            return None
        if encoder == LIKENESS:
            return likeness(image)
        model = self._toolbox.images
        if model is None or model.name != encoder:
            return None
        return np.asarray(model.images([image])[0], np.float32)

    def nearest(self, view: MemoryView, text: str, most: int) -> list[ScoredFrame]:
        """Return the frames that show most what a text says, best first.

        () if the profile has no image-text model, or another than made vectors of frames in view.
        """
        model = self._toolbox.images
        if model is None:
            return []
        query, name = np.asarray(model.text(text), np.float32), model.name

        def cosine(vector: Vector, encoder: str) -> float | None:
            return float(vector @ query) if encoder == name else None

        return self._nearest(view, cosine, most)

    def _nearest(
        self, view: MemoryView, cosine: Callable[[Vector, str], float | None], most: int
    ) -> list[ScoredFrame]:
        """Return the frames with the highest cosines, given each vector and who made it."""
        scored: list[ScoredFrame] = []
        for scope in view.scopes:
            with self._store.begin() as session:
                found = vectors_of_frames(session, scope, self._builder)
            cosines = ((frame, cosine(vector, encoder)) for frame, encoder, vector in found)
            scored += [
                ScoredFrame(KeptFrame(scope, frame), score)
                for frame, score in cosines
                if score is not None
            ]
        return nlargest(most, scored, key=lambda one: one.score)

    def show(
        self,
        frames: Sequence[KeptFrame],
        scores: Sequence[float] | None = None,
        known: Mapping[str, str] | None = None,
    ) -> tuple[ShownImage, ...]:
        """Return frames as images of a result, each with what is known to be on it.

        Args:
            scores: of each, in [0, 1]; None: all alike.
            known: what was found on some of them besides, by ref.
        """
        contents = {one.scope.video: self._contents(one.scope, frames) for one in frames}
        weights = scores if scores is not None else [0.5] * len(frames)
        found = []
        for one, score in zip(frames, weights, strict=True):
            described, names = contents[one.scope.video]
            text = describe_kept(described, one.frame.time_ms, names)
            extra = (known or {}).get(one.ref, "")
            frame = one.frame
            found.append(
                ShownImage(
                    kind="f",
                    id=frame.id,
                    video=one.scope.video,
                    clip=frame.clip,
                    time_ms=frame.time_ms,
                    blob=frame.blob,
                    description="; ".join(part for part in (extra, text) if part),
                    score=min(1.0, max(0.0, score)),
                )
            )
        return tuple(found)

    def _contents(
        self, scope: Scope, frames: Iterable[KeptFrame]
    ) -> tuple[ClipContents, dict[str, str]]:
        clips = {one.frame.clip for one in frames if one.scope.video == scope.video}
        with self._store.begin() as session:
            return clip_contents(session, scope, clips), names_as_of(session, scope)

    def image(self, frame: KeptFrame) -> Image | None:
        """Return a frame as H x W x 3 RGB; None if its file is gone or damaged."""
        try:
            return decode_image(self._store.blobs.get(frame.frame.blob))
        except BlobGone:
            return None

    def read(self, frame: KeptFrame) -> str:
        """Return the text on a frame, "" if there is none."""
        image = self.image(frame)
        lines = [] if image is None else self._toolbox.screen.read(image)
        return escape_tags(make_storable(" / ".join(line.text for line in lines)))[:LONGEST_READING]

    def things(self, frame: KeptFrame, labels: Collection[str] | None = None) -> list[Thing]:
        """Return the things on a frame, of these labels if they are given, best first."""
        detector, image = self._toolbox.objects, self.image(frame)
        if detector is None or image is None:
            return []
        found = detector.objects(image)
        return [one for one in found if labels is None or one.label in labels]

    def reading(self, frame: KeptFrame) -> str:
        """Return what is read and detected on a frame, in words; "" if nothing is."""
        things = counted(self.things(frame))
        text = self.read(frame)
        parts = [TEXT + text if text else "", f"things: {things}" if things else ""]
        return "; ".join(part for part in parts if part)


def counted(things: Iterable[Thing]) -> str:
    """Return how many things there are of each label; "" without any."""
    counts = Counter(one.label for one in things)
    return ", ".join(f"{count} {label}" for label, count in counts.items())


def spread_frames(frames: Sequence[Kept], most: int) -> list[Kept]:
    if len(frames) <= most:
        return list(frames)
    return [frames[number * len(frames) // most] for number in range(most)]
