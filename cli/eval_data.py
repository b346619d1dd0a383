"""``homer eval data``: which data sets there are, and whether a copy of one is whole."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.console import say, say_json, say_table
from cli.eval_report import MISSED
from cli.options import Json
from views.words import plain_line, shortened

if TYPE_CHECKING:
    from evals.dataset import DatasetSource
    from evals.datasets.census import Census

NAMED = 5
"""How many absent videos are named."""


def data(
    name: Annotated[
        str | None, typer.Argument(metavar="DATASET", help="Its name; without it, all are listed.")
    ] = None,
    folder: Annotated[
        Path | None, typer.Argument(metavar="FOLDER", help="Where its files lie.")
    ] = None,
    json: Json = False,
) -> None:
    """Data sets with questions: where to get them, and whether a copy is whole.

    With a folder, its videos and questions are counted and held against the published numbers. The
    exit code is 1 where they differ.

    \b
    Example:
      homer eval data m3-robot data/m3
    """
    from evals.datasets import source, sources

    if name is None or folder is None:
        told = sources() if name is None else (source(name),)
        say_json([_plain(one) for one in told]) if json else _list(told)
        return
    found = _counted(name, folder)
    say_json({**dataclasses.asdict(found), "whole": found.whole}) if json else _show(found)
    raise typer.Exit(MISSED if found.unlike else 0)


def _counted(name: str, folder: Path) -> Census:
    from evals.datasets import read, source
    from evals.datasets.census import census

    return census(read(name, folder), source(name).published)


def _plain(one: DatasetSource) -> dict[str, Any]:
    told = ("name", "title", "licence", "where")
    counts = {**dataclasses.asdict(one.published), "types": dict(one.published.types)}
    return {**{name: getattr(one, name) for name in told}, "published": counts}


def _list(told: tuple[DatasetSource, ...]) -> None:
    heads = ("name", "videos", "questions", "data set", "licence")
    say_table(heads, [_row(one) for one in told])
    for where in dict.fromkeys(one.where for one in told):
        say()
        say(f"{', '.join(one.name for one in told if one.where == where)}: {where}")


def _row(one: DatasetSource) -> tuple[object, ...]:
    known = (one.published.videos, one.published.questions)
    return (one.name, *("" if n is None else n for n in known), one.title, one.licence)


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
    more = ", ..." if len(missing) > NAMED else ""
    return f" ({', '.join(shortened(name, 60) for name in missing[:NAMED])}{more})"


def _share(count: int, found: Census) -> str:
    return f"{count} ({100 * count / found.questions:.1f} %)"
