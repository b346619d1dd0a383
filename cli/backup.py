"""``homer backup`` and ``restore``: the whole library in one file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.console import note, say, say_json
from cli.options import Json
from cli.progress import meter

if TYPE_CHECKING:
    from store.archive import Manifest

UNCHANGED = "stopped; nothing was changed"


def backup(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write; a new one.")],
    json: Json = False,
) -> None:
    """Back the whole library up into one file, as it is at this moment.

    In it: every row and vector, images, answers with their checkpoints, skills. Not in it: video
    files, models' weights, homer.toml. Watching and asking may go on meanwhile.

    \b
    Example:
      homer backup library.homer
    """
    from store.backup import back_up
    from store.database import open_store
    from store.home import Home

    try:
        with open_store(Home.default()) as store, meter() as bar:
            made = back_up(store, out, bar)
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt("stopped; no file was written") from stop
    _tell(made, f"{out}: {out.stat().st_size / 1e6:.1f} MB", as_json=json)


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What homer backup wrote.")],
    check: Annotated[bool, typer.Option("--check", help="Only see whether it is whole.")] = False,
    json: Json = False,
) -> None:
    """Fill an empty library from a back-up.

    The file is read to its end before anything is changed. A library that holds something is
    refused: name an empty HOMER_HOME, or an empty database in HOMER_DATABASE_URL.

    \b
    Example:
      HOMER_HOME=~/restored homer restore library.homer
    """
    from models.profile import load_profile
    from store.backup import check_archive
    from store.home import Home

    home = Home.default()
    limits = load_profile(None, home.config).settings.imports
    try:
        with meter() as bar:
            if check:
                found = check_archive(file, bar, limits)
            else:
                from flows.restore import restore_library

                found = restore_library(home, file, bar, limits)
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(UNCHANGED) from stop
    _tell(found, f"{file}: {'whole' if check else 'restored'}", as_json=json)


def _tell(told: Manifest, done: str, *, as_json: bool) -> None:
    if told.missing:
        note(f"homer: {len(told.missing)} images are gone or damaged, and not in the back-up")
    counts = {name: told.rows(name) for name in ("videos", "clips", "trajectories", "skills")}
    if as_json:
        kept = {"revision": told.revision, "made_at": told.made_at, "images": told.blobs}
        return say_json({**kept, **counts, "missing": list(told.missing)})
    words = ", ".join(f"{count} {_WORDS[name]}" for name, count in counts.items())
    return say(f"{done} ({words}, {told.blobs} images)")


_WORDS = {"videos": "videos", "clips": "clips", "trajectories": "answers", "skills": "skills"}


def register(app: typer.Typer) -> None:
    """Adds the commands of this module."""
    for command in (backup, restore):
        app.command(no_args_is_help=True)(command)
