"""The keepers of frames of the strategies whose memory is asked for."""

from __future__ import annotations

from domain.media import Video
from flows.workspace import Workspace
from memory.kept_frames import VideoKeepers
from strategies.registry import find_strategy


def keepers_of(workspace: Workspace, video: Video) -> VideoKeepers:
    """Return the keepers that run while a video is watched."""
    wanted = [find_strategy(name) for name in workspace.settings.memory.strategies]
    keepers = {one.memory: one.keeper() for one in wanted if one.keeper is not None}
    return VideoKeepers(video, keepers, lambda: workspace.toolbox.images)
