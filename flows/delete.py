"""Deleting a video, or a span of one: all that was remembered of it, and the app's own file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from domain.media import Video
from domain.time import TimeSpan
from flows.jobs import Jobs
from flows.uploads import drop_uploads, uploads_of
from flows.workspace import Workspace
from memory.delete_span import Cut, SpanDeletion, cut_of, delete_span
from store.database import Store
from store.queries.videos import drop_path, known_video
from views.library import delete, resolve
from views.library_view import Holdings, holdings
from views.originals import forget_original


@dataclass(frozen=True)
class Leaving:
    """What goes with a video; ``uploads`` are its files where Homer itself keeps them."""

    video: Video
    held: Holdings
    uploads: tuple[Path, ...]

    @property
    def file(self) -> str:
        """What becomes of the file, in words."""
        if self.uploads:
            return "The uploaded file goes too."
        return "The file itself stays." if self.video.path else "There is no file of it."


@dataclass(frozen=True)
class DeletedVideo:
    """What is gone: ``images`` is a count; ``uploads`` are the files that Homer kept."""

    video: Video
    images: int
    uploads: tuple[Path, ...]


def leaving(store: Store, name: str) -> Leaving:
    """What goes when a video is deleted.

    Raises:
        NotFound: none goes by that name.
        Ambiguous: several do.
    """
    video, held = holdings(store, name)
    return Leaving(video, held, tuple(uploads_of(store.home, video.id)))


def delete_video(store: Store, name: str) -> DeletedVideo:
    """Delete all that is remembered of a video, and its file where it was uploaded to the app.

    A file of the user's own stays.

    Raises:
        NotFound: none goes by that name.
        Ambiguous: several do.
    """
    with store.begin() as session:
        video = resolve(session, name)
    images = delete(store, video.id)
    forget_original(store.home, video.id)
    if video.path:
        Jobs(store.home).forget(video.path)
    return DeletedVideo(video, images, tuple(drop_uploads(store.home, video.id)))


@dataclass(frozen=True)
class Cutting:
    """What goes with a span; ``uploads`` are files that Homer keeps and that show it."""

    cut: Cut
    uploads: tuple[Path, ...]

    @property
    def file(self) -> str:
        """What becomes of the file, in words."""
        if self.uploads:
            return "The uploaded file shows it, so that goes too, whole."
        if self.cut.video.path:
            return "The file itself stays as it is: what is in it can still be played."
        return "There is no file of it."


def cutting(store: Store, name: str, span: TimeSpan) -> Cutting:
    """What goes when a span of a video is deleted.

    Raises:
        NotFound: none goes by that name.
        Ambiguous: several do.
        InputError: the span is empty, or beyond the video's end.
    """
    cut = cut_of(store, name, span)
    return Cutting(cut, tuple(uploads_of(store.home, cut.video.id)))


def cut_video(desk: Workspace, video: Video, span: TimeSpan) -> SpanDeletion:
    """Delete all that is remembered of a span of a video, and its file where Homer keeps it.

    ``desk`` has the models that the video was watched with: texts that change get vectors of the
    kind that the others have.

    Raises:
        NotFound: the video was deleted meanwhile.
        InputError: the span is empty, or beyond the video's end.
    """
    memory = desk.settings.memory
    gone = delete_span(desk.store, video.id, span, desk.toolbox.text, memory)
    if drop_uploads(desk.store.home, video.id):
        with desk.store.begin() as session:
            drop_path(session, video.id)
    return gone


def drop_unwatched(store: Store, sources: Iterable[str]) -> list[Path]:
    """Removes those uploads among ``sources`` that became no video; returns what is gone."""
    folders = {Path(source).parent for source in sources}
    ids = [folder.name for folder in sorted(folders) if folder.parent == store.home.uploads]
    with store.begin() as session:
        strays = [name for name in ids if known_video(session, name) is None]
    return [path for name in strays for path in drop_uploads(store.home, name)]
