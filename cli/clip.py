"""``homer clip``: cuts a moment out of a video."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.console import note, say, say_json
from cli.options import Json, OneVideo, parse_span
from store.database import open_store
from store.home import Home
from views.cut import cut_moment
from views.words import format_span


def clip(
    video: OneVideo,
    begin: Annotated[str, typer.Argument(metavar="FROM", help="The start, such as 12:30.")],
    end: Annotated[str, typer.Argument(metavar="TO", help="The end, such as 12:45.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="MP4 file to write.")],
    json: Json = False,
) -> None:
    """Cut a moment out of a video into a file of its own.

    The file is MP4, with sound. Both are copied as they are where a picture that stands alone lies
    within the second before FROM: the file begins with that one. Else they are encoded again.

    \b
    Examples:
      homer clip talk 12:30 12:45 --out budget.mp4
      homer clip 3f2a 1:02:10 1:03:00 --out goal.mp4
    """
    span = parse_span(begin, end)
    with open_store(Home.default()) as store:
        cut = cut_moment(store, video, span, out)
    if json:
        return say_json({"file": str(out), "span": cut.span.model_dump(), "copied": cut.copied})
    say(f"{out}: {format_span(cut.span)}, {out.stat().st_size / 1e6:.1f} MB")
    if not cut.copied:
        note("encoded again: no keyframe is near the start, or MP4 cannot hold it")
    return None


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(clip)
