"""Trying clips again that could not be watched: which they are, and where their video lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from domain.errors import InputError
from domain.media import ClipState, Video
from perception.source import video_id
from store.database import Store
from store.queries.clips import StoredClip, clips_of
from views.library import resolve


@dataclass(frozen=True)
class Retry:
    """Clips of a video that are to be tried again, and its file; no clips: none has failed."""

    video: Video
    path: Path
    clips: tuple[StoredClip, ...]

    @property
    def indices(self) -> tuple[int, ...]:
        """The numbers of the clips."""
        return tuple(clip.index for clip in self.clips)


def to_retry(store: Store, name: str, only: Sequence[int] = (), *, compare: bool = True) -> Retry:
    """The failed clips of a video, or those of them that ``only`` names.

    Of several those that are done are passed over: a run that was broken off got so far.

    Args:
        store: the store.
        name: the video.
        only: numbers of clips; empty: all that have failed.
        compare: look whether the file is the very one that was watched, which reads all of it.

    Raises:
        NotFound: no video goes by that name.
        Ambiguous: several do.
        InputError: one of ``only`` has not failed, or the video's file is not there any more.
    """
    with store.begin(snapshot=True) as session:
        video = resolve(session, name)
        every = clips_of(session, video.id)
    return Retry(video, _file(video, compare=compare), tuple(_chosen(video, every, only)))


def _chosen(video: Video, every: Sequence[StoredClip], only: Sequence[int]) -> Sequence[StoredClip]:
    failed = {clip.index: clip for clip in every if clip.state == ClipState.FAILED}
    chosen = [clip for index, clip in failed.items() if not only or index in only]
    done = {clip.index for clip in every if chosen and clip.state == ClipState.DONE}
    wrong = [index for index in only if index not in failed and index not in done]
    if wrong:
        told = ", ".join(map(str, failed)) or "none"
        raise InputError(f"clip {wrong[0]} of {video.title} has not failed (failed: {told})")
    return chosen


def _file(video: Video, *, compare: bool) -> Path:
    """Where the video lies; the very file that was watched, where that is to be compared."""
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
    return path
