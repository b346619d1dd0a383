"""What is taken out of a video's file after it was watched: a moment, and frames of strategies."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from uuid import uuid4

from sqlalchemy.orm import Session

from domain import faults
from domain.errors import InputError, MediaError
from domain.media import Clip, ClipState, Video
from domain.time import TimeSpan
from flows.workspace import Workspace
from memory.kept_frames import ClipKeeping, VideoKeepers
from people.model_transactions import run_with_models
from perception.cut_file import CutFile, cut_file, join_parts
from perception.decode import ClipReader, RawClip, read_clips
from perception.frame_keeper import FrameKeeper, sample_frames
from perception.source import clips_of, original_file, previews_of, probe
from retrieval.keyframe_mode import ERASED
from store.database import Store, remove_unused_blobs
from store.files import atomic_file
from store.queries import clips as clip_rows
from store.queries.blobs import recordings_in
from store.queries.keyframes import carried_by
from store.queries.percepts import lock_video
from store.queries.rights import is_erased
from store.queries.videos import find_video
from strategies.registry import find_strategy

PREVIEW_MS = 30_000
"""A file that a browser cannot play is copied for it in parts of this length."""
MOST_PREVIEW_BYTES = 2 << 30
"""Of all parts that are kept, those made last."""


class Preview(NamedTuple):
    """A part of a video that any browser plays, with its span of video time."""

    path: Path
    span: TimeSpan


def cut_moment(store: Store, video: str, span: TimeSpan, out: Path) -> CutFile:
    """Write a moment of a video to ``out`` as MP4; see `cut_file`.

    Args:
        video: the id, beginning of an id, or title.
        span: in milliseconds of video time.
        out: the file to write, which replaces an older one only when it is whole.

    Raises:
        NotFound: there is no such video.
        InputError: the video has no file or recording here, or ends before the span.
        MediaError: nothing decodes in the span.
    """
    with store.begin() as session:
        found = find_video(session, video)
        recordings = recordings_in(session, found.id, span)
    if recordings:
        with TemporaryDirectory() as folder, atomic_file(out) as partial:
            parts = list[tuple[Path, TimeSpan]]()
            for one in recordings:
                path = Path(folder) / f"{one.clip}.mp4"
                path.write_bytes(store.blobs.get(one.blob))
                first = max(span.start_ms, one.span.start_ms, one.start_ms)
                last = max(first, min(span.end_ms, one.span.end_ms))
                parts.append((path, TimeSpan.of(first - one.start_ms, last - one.start_ms)))
            if len(parts) > 1:
                join_parts(parts, partial)
                # The span that recordings have of another; gaps within count.
                begin, end = recordings[0].span.start_ms, recordings[-1].span.end_ms
                return CutFile(
                    TimeSpan.of(max(span.start_ms, begin), min(span.end_ms, end)), copied=False
                )
            ((path, part),), (only,) = parts, recordings
            cut = cut_file(path, part, partial)
            shift = only.start_ms
            return CutFile(
                TimeSpan.of(cut.span.start_ms + shift, cut.span.end_ms + shift), cut.copied
            )
    if not found.path:
        raise InputError(
            f"{found.title} has no file to cut from: it came from captions or an import, or was "
            "a stream that was not recorded then"
        )
    file = original_file(store.home, found.id, found.path)
    if file is None:
        raise InputError(
            f"{found.path} is missing or has changed since it was watched: put it back, or ingest "
            "it again from its new place"
        )
    with atomic_file(out) as partial:
        return cut_file(file, span, partial, found.audio_track)


def cut_preview(store: Store, video: Video, at_ms: int) -> Preview | None:
    """Return a copy of the part around a moment that any browser plays; it is kept for a while.

    Copies are made of files that a browser cannot play itself; see `drop_cached_original`.

    Args:
        video: the video; None is returned where its file is missing or has changed.
        at_ms: the moment, in milliseconds of video time.

    Raises:
        MediaError: nothing decodes there.
    """
    file = original_file(store.home, video.id, video.path)
    if file is None:
        return None
    number = min(at_ms, max(0, video.duration_ms - 1)) // PREVIEW_MS
    folder = previews_of(store.home, video.id)
    kept = next(iter(folder.glob(f"{number}-*.mp4")), None)
    if kept is None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        span = TimeSpan.of(number * PREVIEW_MS, (number + 1) * PREVIEW_MS)
        partial = folder / f"{uuid4().hex}.part"
        try:
            cut = cut_file(file, span, partial, video.audio_track, preview=True)
            kept = partial.replace(folder / f"{number}-{cut.span.start_ms}.mp4")
        finally:
            partial.unlink(missing_ok=True)
        # Delete the previews that were made first, and remains of some, until the others fit.
        left = MOST_PREVIEW_BYTES
        # Another page may delete some meanwhile.
        with suppress(FileNotFoundError):
            found = [(one.stat(), one) for one in folder.parent.glob("*/*")]
            for n, (stat, one) in enumerate(sorted(found, key=lambda pair: -pair[0].st_mtime)):
                left -= stat.st_size
                if n and left < 0:
                    one.unlink(missing_ok=True)
    start_ms = int(kept.stem.partition("-")[2])
    end_ms = min((number + 1) * PREVIEW_MS, max(start_ms, video.duration_ms))
    return Preview(kept, TimeSpan.of(start_ms, end_ms))


# Frames of a strategy whose keeper did not run while the video was watched.


OnClip = Callable[[int, int], None]
"""Called with how many clips were gone through, of how many."""


class FramesMissing(Exception):
    """Frames cannot be kept from the file; the message says why."""


def keep_missing_frames(
    workspace: Workspace, video: Video, name: str, keeper: FrameKeeper, on_clip: OnClip
) -> str:
    """Run a keeper on the clips after those that it saw, one transaction a clip.

    Returns:
        "", or why it cannot: in words for people.

    Raises:
        ModelError: the image-text model failed; the same call goes on.
    """
    with workspace.store.begin() as session:
        carried = carried_by(session, video.id, [name]).get(name)
        through = -1 if carried is None else carried.through_clip
        clips = [
            Clip(index=one.index, span=one.span)
            for one in clip_rows.clips_of(session, video.id)
            if one.index > through and one.state == ClipState.DONE
        ]
    if not clips or not video.has_video:
        return ""
    try:
        with workspace.store.begin() as session:
            if is_erased(session, video.id):
                raise FramesMissing(ERASED)
        file = original_file(workspace.home, video.id, video.path)
        if file is None:
            raise FramesMissing("it was watched without them, and its file is gone or has changed")
        info, watch = probe(file), workspace.settings.watch
        if not set(clips) <= set(clips_of(info.duration_ms, watch)):
            raise FramesMissing("it was watched in clips of another length than is set now")
        reader = ClipReader(file, info, watch, read_clips)
        keepers = VideoKeepers(video, {name: keeper}, lambda: workspace.toolbox.images)
        for number, clip in enumerate(clips):
            on_clip(number, len(clips))
            workspace.give_way()
            _keep(workspace, keepers, clip, reader.clip(clip.index))
        on_clip(len(clips), len(clips))
    except (FramesMissing, MediaError) as error:
        return f"frames are not kept: {error}"
    return ""


def _keep(workspace: Workspace, keepers: VideoKeepers, clip: Clip, raw: RawClip) -> None:
    store, video = workspace.store, keepers.video.id
    sampled = sample_frames(raw, keepers.sampled_ms, workspace.settings.watch.jpeg_quality)
    keeping = ClipKeeping(store, keepers, clip, sampled)
    keeping.prepare()

    def run(session: Session) -> None:
        lock_video(session, video)
        find_video(session, video)
        if is_erased(session, video):
            raise FramesMissing(ERASED)
        keeping.store(session)
        faults.fault_point(faults.FaultPoint.BUILD_ROWS)

    run_with_models(store, run)
    faults.fault_point(faults.FaultPoint.BUILD_COMMITTED)
    remove_unused_blobs(store, keeping.unused)


# The keepers of frames of the strategies whose memory is asked for.


def keepers_of(workspace: Workspace, video: Video) -> VideoKeepers:
    """Return the keepers that run while a video is watched."""
    wanted = [find_strategy(name) for name in workspace.settings.memory.strategies]
    keepers = {one.memory: one.keeper() for one in wanted if one.keeper is not None}
    return VideoKeepers(video, keepers, lambda: workspace.toolbox.images)
