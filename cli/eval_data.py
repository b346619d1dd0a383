"""``homer eval data``: which data sets there are, and whether a copy of one is whole."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.console import say, say_json, say_table
from cli.options import Json
from evals.dataset import DatasetSource
from evals.datasets import read, source, sources
from evals.datasets.census import Census, census
from views.words import plain_line, shortened

DIFFERENT = 1
"""Exit code where a copy differs from what was published."""

MOST_NAMED = 5
"""How many absent videos are named."""


def data(
    name: Annotated[
        str | None, typer.Argument(metavar="DATASET", help="Name of a data set. Default: all.")
    ] = None,
    folder: Annotated[
        Path | None, typer.Argument(metavar="FOLDER", help="Folder with a copy of it, to check.")
    ] = None,
    json: Json = False,
) -> None:
    """List the data sets and where to get them, or check a copy of one.

    With a folder, its videos and questions are counted, and compared with the published numbers.
    The exit code is 1 if they differ.

    \b
    Examples:
      homer eval data
      homer eval data m3-robot data/m3
    """
    if name is None or folder is None:
        listed = sources() if name is None else (source(name),)
        say_json([_as_json(dataset) for dataset in listed]) if json else _list(listed)
        return
    found = census(read(name, folder), source(name).published)
    say_json({**dataclasses.asdict(found), "whole": found.whole}) if json else _show(found)
    raise typer.Exit(DIFFERENT if found.unlike else 0)


def _as_json(dataset: DatasetSource) -> dict[str, Any]:
    names = ("name", "title", "licence", "where")
    counts = {**dataclasses.asdict(dataset.published), "types": dict(dataset.published.types)}
    return {**{name: getattr(dataset, name) for name in names}, "published": counts}


def _list(listed: tuple[DatasetSource, ...]) -> None:
    heads = ("name", "videos", "questions", "data set", "licence")
    say_table(heads, map(_row, listed))
    for where in dict.fromkeys(dataset.where for dataset in listed):
        say()
        names = ", ".join(dataset.name for dataset in listed if dataset.where == where)
        say(f"{names}: {where}")


def _row(dataset: DatasetSource) -> tuple[object, ...]:
    known = (dataset.published.videos, dataset.published.questions)
    return (
        *(dataset.name, *("" if count is None else count for count in known)),
        *(dataset.title, dataset.licence),
    )


def _show(found: Census) -> None:
    each = found.by_video.values()
    say(f"videos: {found.videos}, not here: {len(found.missing)}{_named(found.missing)}")
    say(f"questions: {found.questions}, {min(each)} to {max(each)} a video")
    say(f"asked as of a moment: {_share(found.as_of, found)}")
    say(f"with a known answer: {_share(found.answered, found)}, with its time: {found.timed}")
    if found.types:
        say()
        say_table(("type", "questions"), found.types.items())
    say()
    for line in found.unlike:
        say(f"unlike what was published: {plain_line(line)}")
    if found.whole:
        say("whole: the counts are the published ones")


def _named(missing: tuple[str, ...]) -> str:
    if not missing:
        return ""
    more = ", ..." if len(missing) > MOST_NAMED else ""
    return f" ({', '.join(shortened(name, 60) for name in missing[:MOST_NAMED])}{more})"


def _share(count: int, found: Census) -> str:
    return f"{count} ({100 * count / found.questions:.1f} %)"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("data")(data)
