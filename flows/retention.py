"""Reducing what is stored of videos as they age: fewer and smaller images, text only, nothing.

Off unless the settings have tiers. Schedules call it: running it twice changes nothing more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from sqlalchemy.orm import Session

from domain.errors import BlobGone, NotFound
from domain.retention import Tier
from domain.rights import Deed
from flows.delete import delete_video, preview_video_deletion
from flows.video_locks import watched_videos
from flows.workspace import Workspace
from perception.jpeg import shrink_jpeg
from store.database import Store, remove_unused_blobs
from store.queries import keyframes as stored
from store.queries.audit import record_deed
from store.queries.blobs import drop_recordings, lock_blobs_shared, size_of_recordings
from store.queries.forget import delete_unnamed_blob_rows
from store.queries.frames import delete_kept, kept_images, replace_kept
from store.queries.keyframes import AgedVideo, StoredFrame
from store.queries.percepts import add_blobs, lock_video
from store.queries.videos import known_video


@dataclass(frozen=True)
class VideoReduction:
    """What is removed of one video: images and recordings; ``smaller`` images are shrunk."""

    video: str
    title: str
    keep: str
    images: int
    smaller: int
    bytes: int


@dataclass(frozen=True)
class RetentionResult:
    """The result of a run of retention, or of a dry run."""

    videos: tuple[VideoReduction, ...] = ()

    @property
    def bytes(self) -> int:
        """Return the bytes of all images and recordings that are removed."""
        return sum(video.bytes for video in self.videos)


def retain(workspace: Workspace, now: datetime, *, dry_run: bool = False) -> RetentionResult:
    """Remove from each video what its age tier does not keep, one transaction per video.

    Videos that are still being watched are skipped. Keyframes that an answer was shown or cites
    stay unchanged as long as the answer exists. ``dry_run`` changes nothing.

    Raises:
        DatabaseError: the database is gone; videos that were reduced stay so.
    """
    with workspace.store.begin() as session:
        videos = stored.videos_by_age(session)
    due = ((video, workspace.settings.retain.tier(now - video.since)) for video in videos)
    reductions = [
        _reduce(workspace, video, tier, dry_run) for video, tier in due if tier is not None
    ]
    return RetentionResult(tuple(less for less in reductions if less is not None))


def _reduce(
    workspace: Workspace, video: AgedVideo, tier: Tier, dry_run: bool
) -> VideoReduction | None:
    workspace.give_way()
    store = workspace.store
    if tier.keep == "nothing":
        try:
            holdings = preview_video_deletion(store, video.id).held
            if video.id in watched_videos(store):
                return None
            if not dry_run:
                delete_video(store, video.id)
        except NotFound:
            return None
        return VideoReduction(video.id, video.title, "nothing", holdings.images, 0, holdings.bytes)
    with store.begin() as session:
        lock_video(session, video.id)
        if known_video(session, video.id) is None:
            return None
        less, unused = _Reduction(store, session, video, tier, dry_run).run()
    remove_unused_blobs(store, unused)
    return less if less.images or less.smaller or less.bytes else None


@dataclass(frozen=True)
class _Changes:
    """Images that go, and those that get smaller: JPEG, width and height."""

    removed: Sequence[StoredFrame]
    smaller: dict[StoredFrame, tuple[bytes, int, int]]

    @property
    def bytes(self) -> int:
        """Return by how many bytes there are less."""
        saved = sum(frame.bytes - len(data) for frame, (data, _, _) in self.smaller.items())
        return sum(frame.bytes for frame in self.removed) + saved


class _Reduction:
    """Removes images of one video inside one transaction."""

    def __init__(
        self, store: Store, session: Session, video: AgedVideo, tier: Tier, dry: bool
    ) -> None:
        self._store, self._session, self._video = store, session, video
        self._tier, self._dry = tier, dry

    def run(self) -> tuple[VideoReduction, list[str]]:
        """Return what is removed, and the files that nothing refers to any more."""
        session, video = self._session, self._video.id
        cited = stored.images_in_answers(session, video)
        keyframes = self._changes(
            frame
            for frame in stored.stored_frames(session, video)
            if not {f"k{frame.id}", frame.blob} & cited
        )
        kept = self._changes(
            frame
            for frame in kept_images(session, video)
            if not {f"f{frame.id}", frame.blob} & cited
        )
        crops = stored.face_crops(session, video) if self._tier.keep == "text" else {}
        removed = len(keyframes.removed) + len(kept.removed) + len(crops)
        smaller = len(keyframes.smaller) + len(kept.smaller)
        recorded = size_of_recordings(session, video)
        size = keyframes.bytes + kept.bytes + sum(crops.values()) + recorded
        less = VideoReduction(video, self._video.title, self._tier.keep, removed, smaller, size)
        changed = bool(removed or smaller or recorded) and not self._dry
        return less, self._apply(keyframes, kept) if changed else []

    def _changes(self, frames: Iterable[StoredFrame]) -> _Changes:
        removed, remaining = self._split(list(frames))
        too_large = (one for one in remaining if max(one.width, one.height) > self._tier.side)
        return _Changes(removed, dict(filter(None, map(self._shrink, too_large))))

    def _split(self, frames: Sequence[StoredFrame]) -> tuple[list[StoredFrame], list[StoredFrame]]:
        """Return the images to remove, and the best of each clip to keep."""
        limit = 0 if self._tier.keep == "text" else self._tier.keyframes
        clips = [list(group) for _, group in groupby(frames, key=lambda frame: frame.clip)]
        removed = [frame for clip in clips for frame in clip[limit:]]
        return removed, [frame for clip in clips for frame in clip[:limit]]

    def _shrink(self, frame: StoredFrame) -> tuple[StoredFrame, tuple[bytes, int, int]] | None:
        """Return an image made smaller; one whose image is lost is skipped."""
        with suppress(BlobGone):
            return frame, shrink_jpeg(self._store.blobs.get(frame.blob), self._tier.side)
        return None

    def _apply(self, keyframes: _Changes, kept: _Changes) -> list[str]:
        session, video = self._session, self._video.id
        lock_blobs_shared(session)
        stored.delete_frames(session, [frame.id for frame in keyframes.removed])
        delete_kept(session, [frame.id for frame in kept.removed])
        drop_recordings(session, video)
        if self._tier.keep == "text":
            stored.remove_crops(session, video)
        for frame, (data, width, height) in keyframes.smaller.items():
            stored.replace_frame(session, video, frame, self._add(data), width, height)
        for frame, (data, width, height) in kept.smaller.items():
            replace_kept(session, frame.id, self._add(data), width, height)
        record_deed(session, Deed.RETAINED, video)
        return delete_unnamed_blob_rows(session, video)

    def _add(self, data: bytes) -> str:
        sha = self._store.blobs.put(data)
        add_blobs(self._session, self._video.id, {sha: len(data)})
        return sha
