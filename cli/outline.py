"""``homer outline``: the chapters of a video with their times."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from cli.console import note, say, say_json
from cli.options import AsOf, Json, OneVideo, Profile, parse_as_of
from cli.progress import meter
from flows.build import build
from flows.workspace import open_workspace
from store.database import open_store
from store.home import Home
from store.progress import import_progress
from strategies.registry import strategy_of_outlines
from views.outline import (
    DEEPEST,
    as_markdown,
    as_text,
    as_vtt,
    as_youtube,
    load_outline,
)


class OutlineFormat(StrEnum):
    """How an outline is printed."""

    TEXT = "text"
    MD = "md"
    YOUTUBE = "youtube"
    VTT = "vtt"


_WRITTEN = {
    OutlineFormat.TEXT: as_text,
    OutlineFormat.MD: as_markdown,
    OutlineFormat.YOUTUBE: as_youtube,
    OutlineFormat.VTT: as_vtt,
}


def outline(
    video: OneVideo,
    depth: Annotated[
        int,
        typer.Option(
            min=1,
            max=DEEPEST,
            help="Levels of chapters: 1 super events, 2 also macro events, 3 also what happens.",
        ),
    ] = 2,
    written: Annotated[
        OutlineFormat,
        typer.Option(
            "--format",
            help="How it is printed: youtube for a description, vtt for a track of chapters.",
        ),
    ] = OutlineFormat.TEXT,
    build_first: Annotated[
        bool, typer.Option("--build", help="First build what is missing of it.")
    ] = False,
    as_of: AsOf = None,
    profile: Profile = None,
    json: Json = False,
) -> None:
    """Print the chapters of a video with their times.

    They are of the memory of a strategy, which 'homer build' makes; --build makes it at once.
    Formats youtube and vtt have the finest chapters only, one after another.

    \b
    Examples:
      homer outline talk --build
      homer outline talk --format youtube
      homer outline talk --depth 1 --format md
    """
    if build_first:
        _build(video, profile)
    with open_store(Home.default()) as store:
        found = load_outline(store, video, depth, parse_as_of(as_of))
    if json:
        return say_json(found.model_dump(mode="json"))
    for line in _WRITTEN[written](found).splitlines():
        say(line)
    if written is OutlineFormat.TEXT:
        note("a track of chapters:  --format vtt")
    return None


def _build(video: str, profile: str | None) -> None:
    """Build what is missing of the memory that outlines are made of."""
    strategy = strategy_of_outlines()
    with open_workspace(profile) as workspace, meter() as bar:
        build(workspace, video, strategy, import_progress(bar, strategy.name))


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(outline)
