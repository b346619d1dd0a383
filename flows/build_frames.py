"""Keeps frames of a video that was watched without its keeper, from the video's file."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy.orm import Session

from domain import faults
from domain.errors import MediaError
from domain.media import Clip, ClipState, Video
from flows.workspace import Workspace
from memory.kept_frames import ClipKeeping, VideoKeepers
from people.model_transactions import run_with_models
from perception.decode import ClipReader, RawClip, read_clips
from perception.frame_keeper import FrameKeeper, sample_frames
from perception.source import clips_of, original_file, probe
from retrieval.keyframe_mode import ERASED
from store.database import remove_unused_blobs
from store.queries import clips as clip_rows
from store.queries.keyframes import carried_by
from store.queries.percepts import lock_video
from store.queries.rights import is_erased
from store.queries.videos import find_video
from strategies.registry import find_strategy

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
