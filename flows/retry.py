"""Retrying clips that failed: which clips they are, and where the file of their video is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from domain.errors import InputError
from domain.media import ClipState, Video
from perception.source import video_id
from store.database import Store
from store.queries.clips import StoredClip, clips_of
from store.queries.videos import find_video


@dataclass(frozen=True)
class ClipsToRetry:
    """Clips of a video to retry, and its file; no clips if none has failed."""

    video: Video
    path: Path
    clips: tuple[StoredClip, ...]

    @property
    def indices(self) -> tuple[int, ...]:
        """Return the numbers of the clips."""
        return tuple(clip.index for clip in self.clips)


def clips_to_retry(
    store: Store, name: str, only: Sequence[int] = (), *, compare: bool = True
) -> ClipsToRetry:
    """Return the clips of a video that failed, or that a model failed to write.

    With ``only``, those of them that it names; those that are done are skipped: an interrupted run
    finished them. ``compare``: check that the file is the one that was watched, which reads all.

    Raises:
        NotFound: there is no video of that name.
        Ambiguous: there are several.
        InputError: one of ``only`` has not failed, or the video's file is missing.
    """
    with store.begin(snapshot=True) as session:
        video = find_video(session, name)
        clips = clips_of(session, video.id)
    if video.path is None:
        raise InputError(
            f"{video.title} has no file here (captions, a stream, or imported): "
            "nothing to watch again"
        )
    path = Path(video.path)
    if not path.is_file():
        raise InputError(
            f"{video.title} is not at {path} any more: put it back there, or run "
            "`homer ingest FILE --again` with where it is now"
        )
    if compare and video_id(path) != video.id:
        raise InputError(f"{path} is another file by now: put the one back that was watched")
    failed = {c.index: c for c in clips if c.state == ClipState.FAILED or c.unwritten}
    chosen = [clip for index, clip in failed.items() if not only or index in only]
    done = {clip.index for clip in clips if chosen and clip.state == ClipState.DONE}
    wrong = [index for index in only if index not in failed and index not in done]
    if wrong:
        failed_list = ", ".join(map(str, failed)) or "none"
        raise InputError(f"clip {wrong[0]} of {video.title} has not failed (failed: {failed_list})")
    return ClipsToRetry(video, path, tuple(chosen))
