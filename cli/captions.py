"""``homer import``: a video from its captions alone, or from the file of an export."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from cli.console import note, say, say_json
from cli.ingest import STOPPED
from cli.options import Json, Profile
from cli.progress import ImportProgress, meter
from domain.errors import InputError, ModelError
from domain.limits import ImportLimits
from domain.words import plain_line
from flows.due_windows import build_due_windows
from flows.restore import import_exported_video
from flows.workspace import Workspace, open_workspace
from memory.captions import CaptionTrack, read_captions, read_tracks
from memory.import_captions import import_track
from memory.scaled_captions import import_reference, read_scaled_captions
from memory.writers import make_writers
from models.profile import load_profile
from store.database import open_store
from store.home import Home
from store.progress import SILENT, Meter
from store.queries.videos import VideoState, find_video, video_state
from store.vector_index import build_index


def import_captions(
    title: Annotated[
        str | None,
        typer.Argument(
            metavar="VIDEO|FILE",
            help="File that 'homer export' wrote. With --captions: the title of the video, or "
            "nothing if the lines name their videos.",
        ),
    ] = None,
    captions: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Timed captions: .jsonl, .jsonl.gz, .srt or .vtt."),
    ] = None,
    scale: Annotated[
        bool,
        typer.Option(
            "--scale",
            help="With --captions: they are at several time scales, of a video in memory, and are "
            "stored as a reference for 'homer eval captions'.",
        ),
    ] = False,
    profile: Profile = None,
    json: Json = False,
) -> None:
    """Import a video from an export, or from timed captions without its frames.

    A JSON line of captions has "start" and "end" in seconds and "text", and optionally "day",
    "speaker", "kind" and "video". With days, video time is (day - 1) * 86400 + the second of the
    day. If lines have "video" and no title is given, all videos of the file are imported. With
    --scale each caption also has "scale_s", and the file may be a JSON list.

    \b
    Examples:
      homer import talk.zip
      homer import lecture --captions lecture.srt
      homer import --captions many.jsonl
      homer import week --captions summaries.json --scale
    """
    limits = load_profile(profile, Home.default().config).settings.imports
    if scale:
        if captions is None or title is None:
            raise typer.BadParameter("--scale needs VIDEO and --captions FILE")
        return _import_reference(title, captions, limits, as_json=json)
    if captions is not None and title is None:
        return _import_many(captions, profile, limits, as_json=json)
    if captions is None or title is None:
        if title is None:
            raise typer.BadParameter("give a FILE that homer export wrote, or --captions FILE")
        return _import_export(Path(title), limits, as_json=json)
    track = read_captions(captions, title.strip(), limits)
    try:
        with open_workspace(profile) as workspace, meter() as bar:
            found = _import_track(workspace, track, title.strip() or track.title, bar)
            build_index(workspace.store, bar)
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(STOPPED) from stop
    say_json(found) if json else _show(found)
    raise typer.Exit(4 if found["failed"] else 0)


def _import_reference(title: str, captions: Path, limits: ImportLimits, *, as_json: bool) -> None:
    """Store captions at several scales beside a video in memory."""
    scaled = read_scaled_captions(captions, limits)
    with open_store(Home.default()) as store:
        with store.begin() as session:
            video = find_video(session, title)
        import_reference(store, video, scaled)
    counts = Counter(one.level for one in scaled)
    if as_json:
        return say_json({"video": video.id, "title": video.title, "captions": counts})
    each = ", ".join(f"{count} of {level}" for level, count in counts.items())
    return say(f"{plain_line(video.title)}: a reference of {len(scaled)} captions ({each})")


def _show(found: Mapping[str, object]) -> None:
    word = "imported" if found["fresh"] else "already imported"
    known = f"{found['clips']} clips, {found['failed']} failed, id {found['video']}"
    say(f"{plain_line(str(found['title']))}: {word} ({known})")


def _import_many(
    captions: Path, profile: str | None, limits: ImportLimits, *, as_json: bool
) -> None:
    """Import each video of a file whose lines name it; a failed one does not stop the others."""
    tracks = read_tracks(captions, limits)
    imported: list[dict[str, object]] = []
    failed: dict[str, str] = {}
    try:
        with open_workspace(profile) as workspace, meter() as bar:
            bar.start("videos", len(tracks))
            for track in tracks:
                try:
                    imported.append(_import_track(workspace, track, track.title, SILENT))
                except (InputError, ModelError) as error:
                    failed[track.title] = str(error)
                bar.step()
            build_index(workspace.store, bar)
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(STOPPED) from stop
    if as_json:
        say_json({"videos": imported, "left": failed})
    else:
        for row in imported:
            _show(row)
        for name, why in failed.items():
            note(f"homer: {plain_line(name)}: {plain_line(why)}")
        say(f"{len(imported)} of {len(imported) + len(failed)} videos are in memory")
    raise typer.Exit(4 if failed or any(row["failed"] for row in imported) else 0)


def _import_export(file: Path, limits: ImportLimits, *, as_json: bool) -> None:
    try:
        with open_store(Home.default()) as store, meter() as bar:
            found = import_exported_video(store, file, bar, limits)
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt("stopped; nothing was changed") from stop
    if found.left:
        note(
            f"{found.left} answers stay behind: they cite by numbers that are taken here, or videos"
        )
    if as_json:
        return say_json(found._asdict())
    counts = f"{found.clips} clips, {found.answers} answers, id {found.video}"
    return say(f"{plain_line(found.title)}: imported ({counts})")


def _import_track(
    workspace: Workspace, track: CaptionTrack, title: str, bar: Meter
) -> dict[str, object]:
    before = _state(workspace, track.id)
    progress = ImportProgress(bar, title, before.done if before else 0)
    video = import_track(
        workspace.store,
        track,
        make_writers(workspace.toolbox, workspace.profile),
        workspace.toolbox,
        workspace.settings,
        title=title,
        profile=workspace.profile.name,
        model_names={"text": workspace.profile.text_name, "writer": workspace.profile.writer},
        progress=progress,
        build_windows=build_due_windows,
    )
    state = _state(workspace, video.id)
    clips, failed = (state.clips, state.failed) if state else (0, 0)
    counts = {"clips": clips, "fresh": progress.fresh, "failed": failed}
    return {"video": video.id, "title": video.title, **counts}


def _state(workspace: Workspace, video: str) -> VideoState | None:
    with workspace.store.begin() as session:
        return video_state(session, video)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("import", no_args_is_help=True)(import_captions)
