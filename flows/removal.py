"""Removing videos, spans of them with their memory, and what is stored of old ones.

As videos age, the tiers of the settings leave fewer and smaller images, text only, or nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Annotated

from pydantic import PlainSerializer

from domain import faults
from domain.base import Frozen
from domain.errors import BlobGone, NotFound
from domain.media import Video
from domain.rights import Deed
from domain.settings import Tier
from domain.time import TimeSpan
from domain.words import translate
from flows.addresses import forget_fetched
from flows.jobs import Jobs
from flows.uploads import delete_uploads, uploaded_files
from flows.video_locks import watched_videos
from flows.workspace import Workspace
from memory.delete_span import DeletionRange, SpanDeletion, delete_span, find_deletion_range
from perception.images import shrink_jpeg
from perception.source import drop_cached_original
from store.database import Store, remove_orphaned_blobs, remove_unused_blobs
from store.home import Home, remove_recap_files
from store.queries import keyframes
from store.queries import videos as stored
from store.queries.blobs import (
    delete_unnamed_blob_rows,
    drop_recordings,
    lock_blobs_shared,
    size_of_recordings,
)
from store.queries.keyframes import StoredFrame, delete_kept, kept_images, replace_kept
from store.queries.library import Holdings, video_holdings
from store.queries.percepts import add_blobs, lock_video
from store.queries.rights import record_deed
from store.queries.videos import find_video, known_video, set_progress, videos_by_age


@dataclass(frozen=True)
class VideoDeletionPreview:
    """What the deletion of a video removes; ``uploads`` are its uploaded files."""

    video: Video
    held: Holdings
    uploads: tuple[Path, ...]

    @property
    def file(self) -> str:
        """Return what happens to the video's file, in words."""
        if self.uploads:
            return translate("The uploaded file goes too.")
        return (
            translate("The file itself stays.")
            if self.video.path
            else translate("There is no file of it.")
        )


class DeletedVideo(Frozen):
    """What was deleted: ``images`` is a count; ``uploads`` are the files in Homer's directory.

    In JSON, ``uploads`` is a count too.
    """

    id: str
    title: str
    images: int
    uploads: Annotated[tuple[Path, ...], PlainSerializer(len, return_type=int, when_used="json")]


def preview_video_deletion(store: Store, name: str) -> VideoDeletionPreview:
    """Return what the deletion of a video would remove.

    Raises:
        NotFound: there is no video of that name.
        Ambiguous: there are several.
    """
    with store.begin(snapshot=True) as session:
        video = find_video(session, name)
        held = video_holdings(session, video.id)
    return VideoDeletionPreview(video, held, tuple(uploaded_files(store.home, video.id)))


def delete_video(store: Store, name: str) -> DeletedVideo:
    """Delete the memory of a video, and its file if it was uploaded to the app.

    The user's own file stays.

    Raises:
        NotFound: there is no video of that name.
        Ambiguous: there are several.
    """
    with store.begin() as session:
        video = find_video(session, name)
    images = delete_video_rows(store, video.id)
    drop_cached_original(store.home, video.id)
    if video.path:
        Jobs(store.home).forget(video.path)
    uploads = tuple(_delete_uploads(store.home, video.id))
    return DeletedVideo(id=video.id, title=video.title, images=images, uploads=uploads)


@dataclass(frozen=True)
class SpanDeletionPreview:
    """What the deletion of a span removes; ``uploads`` are uploaded files that show it."""

    cut: DeletionRange
    uploads: tuple[Path, ...]

    @property
    def file(self) -> str:
        """Return what happens to the video's file, in words."""
        if self.uploads:
            return translate("The uploaded file shows it, so that goes too, whole.")
        if self.cut.video.path:
            return translate("The file itself stays as it is: what is in it can still be played.")
        return translate("There is no file of it.")


def preview_span_deletion(store: Store, name: str, span: TimeSpan) -> SpanDeletionPreview:
    """Return what the deletion of a span of a video would remove.

    Raises:
        NotFound: there is no video of that name.
        Ambiguous: there are several.
        InputError: the span is empty, or beyond the video's end.
    """
    cut = find_deletion_range(store, name, span)
    return SpanDeletionPreview(cut, tuple(uploaded_files(store.home, cut.video.id)))


def delete_video_span(workspace: Workspace, video: Video, span: TimeSpan) -> SpanDeletion:
    """Delete the memory of a span of a video, and its file if it was uploaded to the app.

    Changed texts get vectors of the library's encoder, as ``workspace`` searches with it.

    Raises:
        NotFound: the video was deleted in the meantime.
        InputError: the span is empty, or beyond the video's end.
    """
    memory = workspace.settings.memory
    deletion = delete_span(workspace.store, video.id, span, workspace.searching.text, memory)
    drop_cached_original(workspace.store.home, video.id)
    if _delete_uploads(workspace.store.home, video.id):
        with workspace.store.begin() as session:
            set_progress(session, video.id, path=None)
    return deletion


def delete_unwatched_uploads(store: Store, sources: Iterable[str]) -> list[Path]:
    """Delete the uploads among ``sources`` that became no video; return the deleted files."""
    folders = {Path(source).parent for source in sources}
    ids = [folder.name for folder in sorted(folders) if folder.parent == store.home.uploads]
    with store.begin() as session:
        unwatched = [name for name in ids if known_video(session, name) is None]
    return [path for name in unwatched for path in _delete_uploads(store.home, name)]


def _delete_uploads(home: Home, video: str) -> list[Path]:
    """Delete the uploaded and fetched files of a video, and by which address they came."""
    files = delete_uploads(home, video)
    forget_fetched(home, files)
    return files


def delete_video_rows(store: Store, name: str) -> int:
    """Delete every row, blob and trajectory of a video; return how many files.

    Files that a killed ingestion left without a row are deleted too.

    Raises:
        NotFound: there is no video of that name.
        Ambiguous: there are several.
    """
    try:
        with store.begin() as session:
            video = find_video(session, name).id
            unused = stored.delete_video(session, video)
            record_deed(session, Deed.DELETED, video)
            faults.fault_point(faults.FaultPoint.DELETED_ROWS)
    except NotFound:
        remove_orphaned_blobs(store)  # of a deletion that was killed
        raise
    faults.fault_point(faults.FaultPoint.DELETED)
    remove_recap_files(store.home, video)
    return remove_unused_blobs(store, unused) + remove_orphaned_blobs(store)


# Retention. Off unless the settings have tiers. Schedules call it: running it twice changes
# nothing more.


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
        cited = keyframes.images_in_answers(session, video)

        def put(data: bytes) -> str:
            sha = store.blobs.put(data)
            add_blobs(session, video, {sha: len(data)})
            return sha

        gone, smaller = _changes(
            store,
            tier,
            (
                one
                for one in keyframes.stored_frames(session, video)
                if not {f"k{one.id}", one.blob} & cited
            ),
        )
        kept_gone, kept_smaller = _changes(
            store,
            tier,
            (one for one in kept_images(session, video) if not {f"f{one.id}", one.blob} & cited),
        )
        crops = keyframes.face_crops(session, video) if tier.keep == "text" else {}
        recorded = size_of_recordings(session, video)
        shrunk = [*smaller.items(), *kept_smaller.items()]
        size = recorded + sum(crops.values()) + sum(one.bytes for one in (*gone, *kept_gone))
        size += sum(one.bytes - len(data) for one, (data, _, _) in shrunk)
        images = len(gone) + len(kept_gone) + len(crops)
        less = VideoReduction(video, title, tier.keep, images, len(shrunk), size)
        if (images or shrunk or recorded) and not dry_run:
            lock_blobs_shared(session)
            keyframes.delete_frames(session, [one.id for one in gone])
            delete_kept(session, [one.id for one in kept_gone])
            drop_recordings(session, video)
            if tier.keep == "text":
                keyframes.remove_crops(session, video)
            for one, (data, width, height) in smaller.items():
                keyframes.replace_frame(session, video, one, put(data), width, height)
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
