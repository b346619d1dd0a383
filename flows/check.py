"""Checks a video's event graph and stored images, and files that are restored or imported.

A back-up or an export is checked before anything is changed.
"""

from __future__ import annotations

import os
from pathlib import Path

from domain.base import Frozen
from domain.errors import BlobGone
from domain.media import ClipState
from domain.settings import DEFAULT_LIMITS, ImportLimits
from domain.watching import Imported
from memory.event_graph import CheckedGraph, GraphFault, GraphFinding, find_faults
from store.archive import Manifest
from store.backup import check_archive, require_empty_library, restore_backup
from store.database import Store, open_store
from store.export import import_video, open_export
from store.home import Home
from store.migrations import has_tables, migrate
from store.progress import Megabytes, Progress
from store.queries import blobs, clips, events, outline
from store.queries.videos import find_video


class VideoCheck(Frozen):
    """The result of checking a video; ``clips``, ``segments``, ``edges``, ``images`` are counts."""

    video: str
    title: str
    clips: int
    segments: int
    edges: int
    images: int
    findings: tuple[GraphFinding, ...]

    @property
    def exit_code(self) -> int:
        """The exit code of a command that finds this."""
        return 1 if self.findings else 0


def check_memory(
    store: Store, name: str, as_of_ms: int | None = None, progress: Progress | None = None
) -> VideoCheck:
    """Check the whole event graph of a video at a moment of video time (None: now).

    All its images are also compared with their digests, including those of later moments.

    Raises:
        NotFound: there is no video of that name.
        Ambiguous: there are several.
    """
    with store.begin(snapshot=True) as session:
        video = find_video(session, name)
        last = clips.memory_view(session, [video.id], as_of_ms).scopes[0].last_clip
        stored = clips.clips_of(session, video.id)
        patches = [one for one in events.patches_of(session, video.id) if one.at_clip <= last]
        covered = {clip for one in patches for clip in range(one.first_clip, one.at_clip + 1)}
        graph = CheckedGraph(
            stored=frozenset(
                clip.index for clip in stored if clip.state == ClipState.DONE and clip.index <= last
            ),
            due=frozenset(covered),
            pending=frozenset(patches[-1].pending if patches else ()),
            segments=tuple(outline.segments_at(session, video.id, last)),
            edges=tuple(outline.edges_at(session, video.id, last)),
        )
        images = blobs.blobs_of(session, video.id)
    # Images that are missing or damaged, except for those deleted meanwhile.
    megabytes = Megabytes(progress, "images, MB", sum(images.values())) if progress else None
    bad: dict[str, GraphFault] = {}
    for sha, size in images.items():
        try:
            store.blobs.get(sha)
        except BlobGone:
            bad[sha] = GraphFault.DAMAGED if store.blobs.exists(sha) else GraphFault.MISSING
        if megabytes:
            megabytes.step(size)
    with store.begin() as session:
        present = blobs.blobs_of(session, video.id) if bad else {}
    bad_images = [
        GraphFinding(
            fault=bad[sha],
            text=f"a stored image is {bad[sha]}: restore it from a back-up, or watch the video "
            "again",
            refs=(sha,),
        )
        for sha in sorted(bad.keys() & present.keys())
    ]
    return VideoCheck(
        video=video.id,
        title=video.title,
        clips=len(graph.stored),
        segments=len(graph.segments),
        edges=len(graph.edges),
        images=len(images),
        findings=(*find_faults(graph), *bad_images),
    )


# Restoring a library, and importing a video.


def restore_library(
    home: Home,
    path: Path,
    progress: Progress,
    limits: ImportLimits = DEFAULT_LIMITS,
    *,
    rights: bool = False,
) -> Manifest:
    """Fill the empty library of ``home`` from a back-up; see ``restore_backup``.

    Tables are created in the database of ``$HOMER_DATABASE_URL`` if it has none.

    Raises:
        InputError: the file is no back-up, is incomplete or altered, exceeds a limit, or the
            library is not empty; nothing was changed.
        DatabaseError: the database cannot be reached or failed; no row was stored.
    """
    check_archive(path, progress, limits)
    url = os.environ.get("HOMER_DATABASE_URL")
    if url and not has_tables(url):
        migrate(url)
    with open_store(home) as store:
        require_empty_library(store)
        return restore_backup(store, path, progress, limits, rights=rights)


def import_exported_video(
    store: Store, path: Path, progress: Progress, limits: ImportLimits = DEFAULT_LIMITS
) -> Imported:
    """Import the video of an export into a library.

    Raises:
        InputError: the file is no export, is incomplete or altered, exceeds a limit, or the video
            is in the library already; nothing was changed.
        DatabaseError: the database failed; nothing of the video was stored.
    """
    with open_export(path, limits) as parcel:
        return import_video(store, parcel, parcel.contents(), progress)
