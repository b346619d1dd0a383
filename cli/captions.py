"""``homer import``: a video that is known by its captions only."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.console import clean, say, say_json
from cli.ingest import STOPPED, Reporter
from cli.options import Json, Profile
from cli.progress import meter


def import_captions(
    video: Annotated[str, typer.Argument(metavar="VIDEO", help="The title it will go by.")],
    captions: Annotated[
        Path, typer.Option(metavar="FILE", help="Timed captions: .jsonl, .jsonl.gz, .srt or .vtt.")
    ],
    profile: Profile = None,
    json: Json = False,
) -> None:
    """Remember a video from timed captions and transcripts alone: no frames are needed.

    A JSON line has "start" and "end" in seconds and "text", and may have "day", "speaker" and
    "kind". Where it spans days, video time is (day - 1) * 86400 + the second of the day.

    Example:  homer import lecture --captions lecture.srt
    """
    from flows.captions import import_file
    from flows.desk import open_desk

    try:
        with open_desk(profile) as desk, meter() as bar:
            watched = import_file(desk, video, captions, Reporter(bar))
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(STOPPED) from stop
    known = {"video": watched.video.id, "title": watched.video.title, "clips": watched.clips}
    if json:
        return say_json({**known, "fresh": watched.fresh, "failed": watched.failed})
    word = "imported" if watched.fresh else "already imported"
    return say(f"{clean(video)}: {word} ({watched.clips} clips, id {watched.video.id})")


def register(app: typer.Typer) -> None:
    """Adds the commands of this module."""
    app.command("import", no_args_is_help=True)(import_captions)
