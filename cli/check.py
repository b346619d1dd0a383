"""``homer check``: whether a video's event graph holds together, and its images are whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from cli.console import say, say_json
from cli.options import AsOf, Json, OneVideo, parse_as_of
from cli.progress import meter
from views.words import plain_line

if TYPE_CHECKING:
    from views.library import VideoCheck

FOUND = 1


def check(video: OneVideo, as_of: AsOf = None, json: Json = False) -> None:
    """Check the event graph of a video as a whole, and every stored image of it.

    Finds clips that no event covers, events without their clips, edges that lead nowhere or rest
    on nothing, circles in time and edges that contradict each other, and images that are
    missing or damaged. The exit code is 1 where something is found.

    \b
    Examples:
      homer check talk
      homer check talk --as-of 10:00 --json
    """
    from flows.stream.interrupted import end_interrupted_streams
    from store.database import open_store
    from store.home import Home
    from views.library import check_video

    as_of_ms = parse_as_of(as_of)
    with open_store(Home.default()) as store:
        end_interrupted_streams(store)
        with meter() as bar:
            checked = check_video(store, video, as_of_ms, bar)
    say_json(checked.model_dump(mode="json")) if json else _show(checked)
    raise typer.Exit(FOUND if checked.findings else 0)


def _show(checked: VideoCheck) -> None:
    size = f"{checked.segments} segments, {checked.edges} edges over {checked.clips} clips"
    size += f", {checked.images} images"
    if not checked.findings:
        return say(f"{plain_line(checked.title)}: consistent ({size})")
    say(f"{plain_line(checked.title)}: {len(checked.findings)} findings in {size}")
    for one in checked.findings:
        say(f"  {one.fault}: {plain_line(one.text)}  [{', '.join(one.refs)}]")
    return None


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command(no_args_is_help=True)(check)
