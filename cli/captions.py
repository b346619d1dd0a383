"""``homer import``: a video that is known by its captions only, or out of an export's file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.console import note, say, say_json
from cli.ingest import STOPPED
from cli.options import Json, Profile
from cli.progress import ProgressMeter, meter
from views.words import plain_line

if TYPE_CHECKING:
    from domain.limits import ImportLimits
    from flows.workspace import Workspace
    from memory.captions import CaptionTrack
    from store.queries.videos import VideoState


def import_captions(
    title: Annotated[
        str | None,
        typer.Argument(
            metavar="VIDEO|FILE",
            help="What homer export wrote; with --captions, a title, or nothing where each line "
            "names its video.",
        ),
    ] = None,
    captions: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Timed captions: .jsonl, .jsonl.gz, .srt or .vtt."),
    ] = None,
    profile: Profile = None,
    json: Json = False,
) -> None:
    """Take over a video that was exported, or remember videos from their captions alone.

    An export brings everything: rows, vectors, images, and the answers where they can come along.

    With --captions, a video is remembered from timed captions: no frames are needed. A JSON line
    has "start" and "end" in seconds and "text", and may have "day", "speaker" and "kind". Where it
    spans days, video time is (day - 1) * 86400 + the second of the day. Where lines have "video"
    and no title is given, each video of the file is remembered.

    \b
    Examples:
      homer import talk.zip
      homer import lecture --captions lecture.srt
      homer import --captions many.jsonl
    """
    from models.profile import load_profile
    from store.home import Home

    limits = load_profile(profile, Home.default().config).settings.imports
    if captions is not None and title is None:
        return _import_many(captions, profile, limits, as_json=json)
    if captions is None or title is None:
        if title is None:
            raise typer.BadParameter("give a FILE that homer export wrote, or --captions FILE")
        return _import_export(Path(title), limits, as_json=json)
    from flows.workspace import open_workspace
    from memory.captions import read_captions

    track = read_captions(captions, title.strip(), limits)
    try:
        with open_workspace(profile) as desk, meter() as bar:
            found = _remember(desk, track, title.strip() or track.title, bar)
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(STOPPED) from stop
    say_json(found) if json else _say(found)
    raise typer.Exit(4 if found["failed"] else 0)


def _say(found: Mapping[str, object]) -> None:
    word = "imported" if found["fresh"] else "already imported"
    known = f"{found['clips']} clips, {found['failed']} failed, id {found['video']}"
    say(f"{plain_line(str(found['title']))}: {word} ({known})")


def _import_many(
    captions: Path, profile: str | None, limits: ImportLimits, *, as_json: bool
) -> None:
    """Every video of a file whose lines name theirs; one that fails does not stop the others."""
    from flows.workspace import open_workspace
    from memory.captions import read_tracks

    tracks = read_tracks(captions, limits)
    made: list[dict[str, object]] = []
    left: dict[str, str] = {}
    try:
        with open_workspace(profile) as desk, meter() as bar:
            bar.start("videos", len(tracks))
            for track in tracks:
                _remember_one(desk, track, made, left)
                bar.step()
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(STOPPED) from stop
    if as_json:
        say_json({"videos": made, "left": left})
    else:
        _say_many(made, left)
    raise typer.Exit(4 if left or any(one["failed"] for one in made) else 0)


def _remember_one(
    desk: Workspace, track: CaptionTrack, made: list[dict[str, object]], left: dict[str, str]
) -> None:
    from domain.errors import InputError, ModelError

    try:
        made.append(_remember(desk, track, track.title, _Silent()))
    except (InputError, ModelError) as error:
        left[track.title] = str(error)


def _say_many(made: Sequence[Mapping[str, object]], left: Mapping[str, str]) -> None:
    for one in made:
        _say(one)
    for name, why in left.items():
        note(f"homer: {plain_line(name)}: {plain_line(why)}")
    say(f"{len(made)} of {len(made) + len(left)} videos are in memory")


class _Silent:
    """A meter for work that is a single step of other work."""

    def start(self, label: str, total: int, done: int = 0) -> None:
        """New work."""

    def step(self, steps: int = 1) -> None:
        """So many steps are done."""

    def say(self, text: str) -> None:
        """A line above the bar."""

    def aside(self, text: str) -> None:
        """A few words beside the count."""


def _import_export(file: Path, limits: ImportLimits, *, as_json: bool) -> None:
    from flows.restore import import_exported_video
    from store.database import open_store
    from store.home import Home

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


def _remember(
    desk: Workspace, track: CaptionTrack, title: str, bar: ProgressMeter
) -> dict[str, object]:
    from memory.import_captions import import_track
    from memory.writers import make_writers

    before = _state(desk, track.id)
    moved = Moved(bar, title, before.done if before else 0)
    video = import_track(
        desk.store,
        track,
        make_writers(desk.toolbox, desk.profile),
        desk.toolbox,
        desk.settings,
        title=title,
        profile=desk.profile.name,
        model_names={"text": desk.profile.text, "writer": desk.profile.writer},
        progress=moved,
    )
    state = _state(desk, video.id)
    clips, failed = (state.clips, state.failed) if state else (0, 0)
    counts = {"clips": clips, "fresh": moved.fresh, "failed": failed}
    return {"video": video.id, "title": video.title, **counts}


def _state(desk: Workspace, video: str) -> VideoState | None:
    from store.queries.videos import video_state

    with desk.store.begin() as session:
        return video_state(session, video)


class Moved:
    """Moves the bar to where the import is."""

    def __init__(self, bar: ProgressMeter, title: str, done: int) -> None:
        self._bar, self._title, self._at, self.fresh = bar, title, done, 0

    def __call__(self, done: int, total: int) -> None:
        """So many of so many clips are in memory."""
        if not self.fresh:
            self._bar.start(self._title, total, self._at)
        self._bar.step(done - self._at)
        self.fresh += done - self._at
        self._at = done


def register(app: typer.Typer) -> None:
    """Adds the commands of this module."""
    app.command("import", no_args_is_help=True)(import_captions)
