"""Runs the keepers of frames on a clip, between the clip before and the one after."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from domain.built import Carried, FrameDraft, KeptClip
from domain.media import Clip, Video
from models.ports import ImageEncoder
from people.model_transactions import ModelCallNeeded
from perception.frame_keeper import (
    FrameKeeper,
    FrameToKeep,
    SampledFrame,
    frames_for,
    kept_jpeg,
)
from perception.jpeg import decode_image
from store.blobs import BlobStore
from store.database import Store
from store.queries.blobs import lock_blobs_shared
from store.queries.frames import carried_by, has_done_between, store_kept

NEVER = Carried(0, -1, {})


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
        self, clip: Clip, sampled: Sequence[SampledFrame], carried: Mapping[str, Carried]
    ) -> list[KeptClip]:
        """Return what keepers make of a clip.

        Args:
            clip: the clip.
            sampled: its frames at ``sampled_ms``.
            carried: what those keepers that are shown the clip carried on, as it is stored.

        Raises:
            ModelError: the image-text model failed.
        """
        return [self._keep(name, clip, sampled, before) for name, before in carried.items()]

    def _keep(
        self, name: str, clip: Clip, sampled: Sequence[SampledFrame], before: Carried
    ) -> KeptClip:
        keeper, encoder = self.keepers[name], self.encoder()
        # Begun anew for each clip, so that it makes no difference where a run was killed.
        state = before.state if before.version == keeper.version else {}
        made = keeper.begin(self.video, state, encoder).clip(clip, frames_for(keeper, sampled))
        jpegs = {frame.time_ms: frame.jpeg for frame in sampled}
        files: dict[str, bytes] = {}
        frames = [_draft(one, jpegs[one.time_ms], encoder, files) for one in made.frames]
        return KeptClip(name, keeper.version, clip.index, frames, made.dropped, made.state, files)


def _draft(
    frame: FrameToKeep, sampled: bytes, encoder: ImageEncoder | None, files: dict[str, bytes]
) -> FrameDraft:
    """Return a frame as it is stored, and add its JPEG to ``files``."""
    jpeg, width, height = kept_jpeg(sampled, frame)
    sha = hashlib.sha256(jpeg).hexdigest()
    files[sha] = jpeg
    image = decode_image(jpeg) if encoder is not None else None
    vector = None if encoder is None or image is None else encoder.images([image])[0]
    name = None if encoder is None or vector is None else encoder.name
    what = (frame.tier, frame.reason, vector, name)
    return FrameDraft(frame.time_ms, sha, width, height, *what)


class ClipKeeping:
    """What the keepers make of one clip, for a transaction that stores it.

    Args:
        keepers: the keepers of the video.
        clip: the clip.
        sampled: its frames.
    """

    def __init__(self, keepers: VideoKeepers, clip: Clip, sampled: Sequence[SampledFrame]) -> None:
        self._keepers, self._clip, self._sampled = keepers, clip, sampled
        self._made: list[KeptClip] = []
        self._carried: dict[str, Carried] = {}
        self.unused: list[str] = []
        """SHA-256 of files that no video uses any more, after ``store``."""

    def prepare(self, store: Store) -> None:
        """Show the clip to the keepers before the transaction, so that it is run once.

        Raises:
            ModelError: the image-text model failed.
        """
        if self._keepers.keepers:
            with store.begin() as session:
                due = self._due(session)
            self._make(due)

    def store(self, session: Session, blobs: BlobStore) -> None:
        """Store what the keepers make of the clip.

        Raises:
            ModelCallNeeded: it is not known yet, or what they carried on has changed meanwhile.
        """
        video = self._keepers.video
        due = self._due(session)
        if due != self._carried:
            raise ModelCallNeeded(lambda: self._make(due))
        self.unused = []
        for made in self._made:
            lock_blobs_shared(session)
            for data in made.jpegs.values():
                blobs.put(data)
            self.unused += store_kept(session, video.id, made)

    def _due(self, session: Session) -> dict[str, Carried]:
        """Return what those keepers carried on that are shown this clip next."""
        names, video = self._keepers.keepers, self._keepers.video.id
        carried = carried_by(session, video, names) if names else {}
        before = {name: carried.get(name, NEVER) for name in names}
        return {
            name: one for name, one in before.items() if self._is_due(session, one.through_clip)
        }

    def _is_due(self, session: Session, through: int) -> bool:
        """Check whether a keeper that went through a clip is shown this one next.

        One that did not see clips of a file before sees them all later, by ``homer build``; those
        of a stream cannot be seen again.
        """
        clip, video = self._clip.index, self._keepers.video
        if through >= clip:
            return False
        return video.path is None or not has_done_between(session, video.id, through, clip)

    def _make(self, carried: dict[str, Carried]) -> None:
        self._made = self._keepers.keep(self._clip, self._sampled, carried)
        self._carried = carried
