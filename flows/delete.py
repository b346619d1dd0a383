"""Deletion of a video, or of a span of one, with its memory and its uploaded file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import PlainSerializer

from domain import faults
from domain.base import Frozen
from domain.errors import NotFound
from domain.media import Video
from domain.rights import Deed
from domain.time import TimeSpan
from domain.words import translate
from flows.addresses import forget_fetched
from flows.jobs import Jobs
from flows.uploads import delete_uploads, uploaded_files
from flows.workspace import Workspace
from memory.delete_span import DeletionRange, SpanDeletion, delete_span, find_deletion_range
from perception.source import drop_cached_original
from store.database import Store, remove_orphaned_blobs, remove_unused_blobs
from store.home import Home, remove_recap_files
from store.queries import videos as stored
from store.queries.library import Holdings, video_holdings
from store.queries.rights import record_deed
from store.queries.videos import find_video, known_video, set_progress


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
