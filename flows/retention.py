"""Reducing what is stored of videos as they age: fewer and smaller images, text only, nothing.

Off unless the settings have tiers. Schedules call it: running it twice changes nothing more.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from domain.errors import BlobGone, NotFound
from domain.rights import Deed
from domain.settings import Tier
from flows.delete import delete_video, preview_video_deletion
from flows.video_locks import watched_videos
from flows.workspace import Workspace
from perception.images import shrink_jpeg
from store.database import Store, remove_unused_blobs
from store.queries import keyframes as stored
from store.queries.blobs import (
    delete_unnamed_blob_rows,
    drop_recordings,
    lock_blobs_shared,
    size_of_recordings,
)
from store.queries.keyframes import StoredFrame, delete_kept, kept_images, replace_kept
from store.queries.percepts import add_blobs, lock_video
from store.queries.rights import record_deed
from store.queries.videos import known_video, videos_by_age


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
        videos = videos_by_age(session)
    retain = workspace.settings.retain
    due = ((video, title, retain.tier(now - since)) for video, title, since in videos)
    reductions = list[VideoReduction | None]()
    for video, title, tier in due:
        if tier is None:
            continue
        workspace.give_way()
        store = workspace.store
        if tier.keep != "nothing":
            reductions.append(_reduce_images(store, video, title, tier, dry_run))
            continue
        try:
            holdings = preview_video_deletion(store, video).held
            if video in watched_videos(store):
                continue
            if not dry_run:
                delete_video(store, video)
        except NotFound:
            continue
        images, size = holdings.images, holdings.bytes
        reductions.append(VideoReduction(video, title, "nothing", images, 0, size))
    return RetentionResult(tuple(less for less in reductions if less is not None))


def _reduce_images(
    store: Store, video: str, title: str, tier: Tier, dry_run: bool
) -> VideoReduction | None:
    """Remove images and recordings of one video inside one transaction."""
    unused = list[str]()
    with store.begin() as session:
        lock_video(session, video)
        if known_video(session, video) is None:
            return None
        cited = stored.images_in_answers(session, video)

        def put(data: bytes) -> str:
            sha = store.blobs.put(data)
            add_blobs(session, video, {sha: len(data)})
            return sha

        gone, smaller = _changes(
            store,
            tier,
            (
                one
                for one in stored.stored_frames(session, video)
                if not {f"k{one.id}", one.blob} & cited
            ),
        )
        kept_gone, kept_smaller = _changes(
            store,
            tier,
            (one for one in kept_images(session, video) if not {f"f{one.id}", one.blob} & cited),
        )
        crops = stored.face_crops(session, video) if tier.keep == "text" else {}
        recorded = size_of_recordings(session, video)
        shrunk = [*smaller.items(), *kept_smaller.items()]
        size = recorded + sum(crops.values()) + sum(one.bytes for one in (*gone, *kept_gone))
        size += sum(one.bytes - len(data) for one, (data, _, _) in shrunk)
        images = len(gone) + len(kept_gone) + len(crops)
        less = VideoReduction(video, title, tier.keep, images, len(shrunk), size)
        if (images or shrunk or recorded) and not dry_run:
            lock_blobs_shared(session)
            stored.delete_frames(session, [one.id for one in gone])
            delete_kept(session, [one.id for one in kept_gone])
            drop_recordings(session, video)
            if tier.keep == "text":
                stored.remove_crops(session, video)
            for one, (data, width, height) in smaller.items():
                stored.replace_frame(session, video, one, put(data), width, height)
            for one, (data, width, height) in kept_smaller.items():
                replace_kept(session, one.id, put(data), width, height)
            record_deed(session, Deed.RETAINED, video)
            unused = delete_unnamed_blob_rows(session, video)
    remove_unused_blobs(store, unused)
    return less if images or shrunk or size else None


def _changes(
    store: Store, tier: Tier, frames: Iterable[StoredFrame]
) -> tuple[list[StoredFrame], dict[StoredFrame, tuple[bytes, int, int]]]:
    """Return the images that go, and those that get smaller: JPEG, width and height."""
    most = 0 if tier.keep == "text" else tier.keyframes
    removed, smaller = list[StoredFrame](), dict[StoredFrame, tuple[bytes, int, int]]()
    for _, clip in groupby(frames, key=lambda frame: frame.clip):
        best_first = list(clip)
        removed += best_first[most:]
        for one in best_first[:most]:
            if max(one.width, one.height) > tier.side:
                with suppress(BlobGone):  # One whose image is lost is skipped.
                    smaller[one] = shrink_jpeg(store.blobs.get(one.blob), tier.side)
    return removed, smaller
