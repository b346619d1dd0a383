"""Runs the keepers of frames on a clip, between the clip before and the one after."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from sqlalchemy.orm import Session

from domain.built import Carried, ChangedFrame, FrameDraft, KeptClip, NewImage
from domain.errors import BlobGone
from domain.media import Clip, TimedImage, Video
from models.ports import ImageEncoder, Vector
from people.model_transactions import ModelCallNeeded
from perception.frame_keeper import (
    FrameChange,
    FrameKeeper,
    FrameToKeep,
    KeptFrames,
    frames_for,
    kept_jpeg,
)
from perception.images import LIKENESS, decode_image
from store.blobs import BlobStore
from store.database import Store
from store.queries.blobs import lock_blobs_shared
from store.queries.encoders import require_encoder
from store.queries.keyframes import blobs_at, carried_by, has_done_between, store_kept

NEVER = Carried(0, -1, {})
Jpegs = dict[str, bytes]
"""JPEGs by their SHA-256."""


@dataclass(frozen=True, eq=False)
class VideoKeepers:
    """The keepers of a video's frames, by the name under which they are stored.

    ``encoder`` returns the profile's image-text model, if it has one.
    """

    video: Video
    keepers: Mapping[str, FrameKeeper]
    encoder: Callable[[], ImageEncoder | None] = lambda: None

    @property
    def sampled_ms(self) -> tuple[int, ...]:
        """Return the intervals at which frames are sampled for them."""
        return tuple(sorted({keeper.every_ms for keeper in self.keepers.values()}))

    def keep(
        self, name: str, clip: Clip, sampled: Sequence[TimedImage], before: Carried
    ) -> KeptFrames:
        """Return what a keeper makes of a clip.

        Args:
            sampled: its frames at ``sampled_ms``.
            before: what the keeper carried on, as it is stored.
        """
        keeper = self.keepers[name]
        state = before.state if before.version == keeper.version else {}
        frames = frames_for(keeper, sampled)
        return keeper.keep(self.video, state, self.encoder(), clip, frames)


def _draft(
    frame: FrameToKeep, sampled: bytes, encoder: ImageEncoder | None, files: Jpegs
) -> FrameDraft:
    """Return a frame as it is stored, and add its JPEG to ``files``."""
    jpeg, image = _image(sampled, frame)
    files[image.blob] = jpeg
    # Its vector, and what made that: the keeper, else the image-text model.
    vector: Vector | None = frame.vector
    by: str | None = frame.vectors
    if vector is None:
        by = None
        decoded = None if encoder is None else decode_image(jpeg)
        if encoder is not None and decoded is not None:
            vector, by = encoder.images([decoded])[0], encoder.name
    return FrameDraft(
        frame.time_ms, image.blob, image.width, image.height, frame.tier, frame.reason, vector, by
    )


def _image(jpeg: bytes, frame: FrameToKeep | FrameChange) -> tuple[bytes, NewImage]:
    data, width, height = kept_jpeg(jpeg, frame)
    return data, NewImage(hashlib.sha256(data).hexdigest(), width, height)


def _changed(frame: FrameChange, before: str, blobs: BlobStore, files: Jpegs) -> ChangedFrame:
    """Return what changes of a stored frame, and add its new JPEG to ``files``, if it has one."""
    image = None
    if frame.side is not None or frame.quality is not None:
        # A file that is gone or damaged is for ``homer check`` to report.
        with suppress(BlobGone):
            jpeg, image = _image(blobs.get(before), frame)
            files[image.blob] = jpeg
    if image is not None and image.blob == before:
        image = None
    return ChangedFrame(frame.time_ms, before, frame.reason, frame.tier, image)


class ClipKeeping:
    """What the keepers make of one clip, for a transaction that stores it."""

    def __init__(
        self, store: Store, keepers: VideoKeepers, clip: Clip, sampled: Sequence[TimedImage]
    ) -> None:
        self._store, self._keepers = store, keepers
        self._clip, self._sampled = clip, sampled
        self._made: list[KeptClip] = []
        self._carried: dict[str, Carried] = {}
        self.unused: list[str] = []
        """SHA-256 of files that no video uses any more, after ``store``."""

    def prepare(self) -> None:
        """Show the clip to the keepers before the transaction, so that it is run once.

        Raises:
            ModelError: the image-text model failed.
        """
        if self._keepers.keepers:
            with self._store.begin() as session:
                due = self._due(session)
            self._make(due)

    def store(self, session: Session) -> None:
        """Store what the keepers make of the clip.

        Raises:
            InputError: the library has vectors of another image encoder.
            ModelCallNeeded: it is not known yet, or what it rests on has changed meanwhile.
        """
        video = self._keepers.video
        due = self._due(session)
        if due != self._carried or any(self._is_outdated(session, made) for made in self._made):
            raise ModelCallNeeded(lambda: self._make(due))
        made_by = {one.image_encoder for made in self._made for one in made.frames}
        for encoder in made_by - {LIKENESS}:
            if encoder is not None:
                require_encoder(session, encoder, images=True)
        self.unused = []
        for made in self._made:
            lock_blobs_shared(session)
            for data in made.jpegs.values():
                self._store.blobs.put(data)
            self.unused += store_kept(session, video.id, made)

    def _due(self, session: Session) -> dict[str, Carried]:
        """Return what those keepers carried on that are shown this clip next."""
        names, video = self._keepers.keepers, self._keepers.video.id
        carried = carried_by(session, video, names) if names else {}
        before = {name: carried.get(name, NEVER) for name in names}
        # A keeper that did not see clips of a file before sees them all later, by ``homer build``;
        # those of a stream cannot be seen again.
        clip, path = self._clip.index, self._keepers.video.path
        return {
            name: one
            for name, one in before.items()
            if one.through_clip < clip
            and (path is None or not has_done_between(session, video, one.through_clip, clip))
        }

    def _is_outdated(self, session: Session, made: KeptClip) -> bool:
        """Check whether a frame that changes has another image by now, or is gone."""
        times = [one.time_ms for one in made.changed]
        stored = blobs_at(session, self._keepers.video.id, made.builder, times)
        return stored != {one.time_ms: one.before for one in made.changed}

    def _make(self, carried: dict[str, Carried]) -> None:
        self._made = [self._make_one(name, before) for name, before in carried.items()]
        self._carried = carried

    def _make_one(self, name: str, before: Carried) -> KeptClip:
        keepers, clip, blobs = self._keepers, self._clip.index, self._store.blobs
        made = keepers.keep(name, self._clip, self._sampled, before)
        every_ms = keepers.keepers[name].every_ms
        sampled = {
            frame.time_ms: frame.jpeg for frame in self._sampled if frame.time_ms % every_ms == 0
        }
        encoder = keepers.encoder()
        files: Jpegs = {}
        # Check that a keeper names frames that it was shown.
        unknown = sorted({frame.time_ms for frame in made.frames} - sampled.keys())
        if unknown:
            times = ", ".join(map(str, unknown))
            raise ValueError(f"the keeper {name} keeps frames that it was not shown: at {times} ms")
        frames = [_draft(one, sampled[one.time_ms], encoder, files) for one in made.frames]
        changing = [one.time_ms for one in made.changed]
        with self._store.begin() as session:
            stored = blobs_at(session, keepers.video.id, name, changing) if changing else {}
        changed = [
            _changed(one, stored[one.time_ms], blobs, files)
            for one in made.changed
            if one.time_ms in stored
        ]
        version = keepers.keepers[name].version
        return KeptClip(name, version, clip, frames, made.dropped, changed, made.state, files)
