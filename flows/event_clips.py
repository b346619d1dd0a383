"""The video of a part of a video, as a builder's language model is shown it beside frames."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from agent.builder import LoadClip, no_clip
from domain.errors import BlobGone, InputError, MediaError
from domain.media import Video
from domain.time import TimeSpan
from flows.cut import cut_moment
from flows.workspace import Workspace
from perception.clip_view import clip_view
from perception.decode import read_clips
from perception.source import probe
from store.queries.audit import is_erased


def clip_loader(workspace: Workspace, video: Video) -> LoadClip:
    """Return what loads the video of a span, by the setting ``memory.clip_view``.

    It is made of the video's file or recording like that of a clip that is watched, from the start
    of the span on and as long as a clip at most: more is not held in memory.

    Raises:
        SetupError: the profile's writer is to be shown videos and cannot watch any.
    """
    memory, watch = workspace.profile.shown_clips, workspace.settings.watch
    if memory.clip_view != "video" or not video.has_video:
        return no_clip

    def load(span: TimeSpan) -> bytes | None:
        with workspace.store.begin() as session:
            if is_erased(session, video.id):
                return None
        part = TimeSpan.of(span.start_ms, min(span.end_ms, span.start_ms + watch.clip_ms))
        with TemporaryDirectory() as folder:
            path = Path(folder) / "part.mp4"
            try:
                cut_moment(workspace.store, video.id, part, path)
                info = probe(path)
                with closing(read_clips(path, info, watch)) as clips:
                    raw = next(clips, None)
            except (InputError, MediaError, BlobGone):
                return None  # There is no file or recording of it here, or none that decodes.
        return None if raw is None else clip_view(raw, memory, watch).video

    return load
