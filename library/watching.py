"""Videos coming into memory: clips that are tried again, and imports."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field

from domain.errors import InputError, ModelError
from domain.watching import Imported, Watched
from domain.words import plain_line
from flows.clip_memory import build_due_windows
from flows.jobs import clips_to_retry
from flows.watching import watch_files
from flows.workspace import Workspace, workspace_of
from library.ingesting import STOPPED, Reporter
from library.params import Direct, OnCommandLine, ProfileName, VideoName, several
from library.trajectories import ingest_usage
from memory.captions import CaptionTrack, read_captions, read_tracks
from memory.import_captions import import_reference, import_track, read_scaled_captions
from memory.writers import make_writers
from models.profile import load_profile
from store.database import Store, open_store
from store.export import import_exported_video
from store.home import Home
from store.progress import SILENT, Meter, import_progress
from store.queries.videos import find_video, video_state
from store.vector_index import build_index


def with_usage(watched: Watched, store: Store) -> Watched:
    """Return it with what its fresh clips took."""
    if not watched.fresh:
        return watched
    return watched.model_copy(update={"used": str(ingest_usage(store, watched.video))})


def retry(
    home: Home,
    video: VideoName,
    clip: Annotated[
        tuple[Annotated[int, Field(ge=0)], ...],
        BeforeValidator(several),
        Field(description="Only the clip with this number, as in 'homer show'. Repeatable."),
        OnCommandLine(metavar="N"),
    ] = (),
    profile: ProfileName = None,
    direct: Direct = False,
    progress: Meter = SILENT,
    opened: Workspace | None = None,
) -> list[Watched]:
    """Retry the failed clips of a video, however often they have failed.

    Without --profile, the profile that the video was watched with is used.

    Examples:
      homer retry talk
      homer retry talk --clip 4 --clip 7

    Raises:
        NotFound: there is no such video.
        InputError: a clip has not failed, or the video's file is missing.
    """
    with open_store(home) as store:
        # Looked up before a workspace is opened: the profile is that of the video.
        wanted = clips_to_retry(store, video, clip)
    if not wanted.clips:
        progress.say(f"no clip of {plain_line(wanted.video.title)} has failed")
        return []
    try:
        with workspace_of(opened, profile or wanted.video.profile, home) as workspace:
            (outcome,) = watch_files(
                workspace,
                [wanted.path],
                Reporter(progress),
                direct=direct,
                again=True,
                only=wanted.indices,
            )
            if outcome.failure is not None:
                raise outcome.failure
            return [with_usage(outcome, workspace.store)]
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(STOPPED) from stop


def import_video(
    home: Home,
    video: Annotated[
        str | None,
        Field(
            description="File that 'homer export' wrote. With --captions: the title of the video, "
            "or nothing if the lines name their videos."
        ),
        OnCommandLine(metavar="VIDEO|FILE", argument=True),
    ] = None,
    captions: Annotated[
        Path | None,
        Field(description="Timed captions: .jsonl, .jsonl.gz, .srt or .vtt."),
        OnCommandLine(metavar="FILE"),
    ] = None,
    scale: Annotated[
        bool,
        Field(
            description="With --captions: they are at several time scales, of a video in memory, "
            "and are stored as a reference for 'homer eval captions'."
        ),
    ] = False,
    profile: ProfileName = None,
    progress: Meter = SILENT,
    opened: Workspace | None = None,
) -> list[Imported]:
    """Import a video from an export, or from timed captions without its frames.

    A JSON line of captions has "start" and "end" in seconds and "text", and optionally "day",
    "speaker", "kind" and "video". With days, video time is (day - 1) * 86400 + the second of the
    day. If lines have "video" and no title is given, all videos of the file are imported. With
    --scale each caption also has "scale_s", and the file may be a JSON list.

    Examples:
      homer import talk.zip
      homer import lecture --captions lecture.srt
      homer import --captions many.jsonl
      homer import week --captions summaries.json --scale

    Raises:
        InputError: a file cannot be read, or what is given does not go together.
        NotFound: there is no such video.
    """
    limits = load_profile(profile, home.config).settings.imports
    if scale or captions is None:
        if video is None or (scale and captions is None):
            raise InputError("give a FILE of homer export, or --captions FILE; --scale needs VIDEO")
        with open_store(home) as store:
            if captions is None:
                try:
                    found = import_exported_video(store, Path(video), progress, limits)
                except KeyboardInterrupt as stop:
                    raise KeyboardInterrupt("stopped; nothing was changed") from stop
                return [found]
            scaled = read_scaled_captions(captions, limits)
            with store.begin() as session:
                known = find_video(session, video)
            import_reference(store, known, scaled)
        counts = Counter(one.level for one in scaled)
        return [Imported(video=known.id, title=known.title, captions=counts)]
    if video is None:
        # The lines name their videos.
        tracks = {track.title: track for track in read_tracks(captions, limits)}
    else:
        track = read_captions(captions, video.strip(), limits)
        tracks = {video.strip() or track.title: track}
    try:
        with workspace_of(opened, profile, home) as workspace:
            if video is not None:
                ((title, track),) = tracks.items()
                made = [_import_track(workspace, track, title, progress)]
            else:
                progress.start("videos", len(tracks))
                made = [
                    _one_of_many(workspace, title, track, progress)
                    for title, track in tracks.items()
                ]
            build_index(workspace.store, progress)
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(STOPPED) from stop
    return made


def _one_of_many(workspace: Workspace, title: str, track: CaptionTrack, bar: Meter) -> Imported:
    """Import captions; where that fails, the others go on."""
    try:
        return _import_track(workspace, track, title, SILENT)
    except (InputError, ModelError) as error:
        return Imported(title=title, error=str(error))
    finally:
        bar.step()


def _import_track(workspace: Workspace, track: CaptionTrack, title: str, bar: Meter) -> Imported:
    store, profile = workspace.store, workspace.profile
    with store.begin() as session:
        # What was there before is not counted as new.
        before = video_state(session, track.id)
    video = import_track(
        store,
        track,
        make_writers(workspace.toolbox, profile),
        workspace.toolbox,
        workspace.settings,
        title=title,
        profile=profile.name,
        model_names={"text": profile.text_name, "writer": profile.writer},
        progress=import_progress(bar, title),
        build_windows=build_due_windows,
    )
    with store.begin() as session:
        state = video_state(session, video.id)
    done = state.done if state else 0
    return Imported(
        video=video.id,
        title=video.title,
        clips=state.clips if state else 0,
        fresh=done - (before.done if before else 0),
        failed=state.failed if state else 0,
    )
