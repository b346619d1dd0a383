"""``homer backup``, ``restore`` and ``db``: the database as a whole."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from cli.console import note, say, say_json
from cli.options import Json
from cli.progress import meter
from models.profile import load_profile
from store.archive import Manifest
from store.backup import back_up, check_archive
from store.database import open_store
from store.embedded import EmbeddedPostgres
from store.home import Home
from store.migrations import HEAD, migrate
from store.vector_index import build_index

UNCHANGED = "stopped; nothing was changed"

_COUNTED = {"videos": "videos", "clips": "clips", "trajectories": "answers", "skills": "skills"}


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
    try:
        with open_store(Home.default()) as store, meter() as bar:
            made = back_up(store, out, bar)
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt("stopped; no file was written") from stop
    _report(made, f"{out}: {out.stat().st_size / 1e6:.1f} MB", as_json=json)


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
    home = Home.default()
    limits = load_profile(None, home.config).settings.imports
    try:
        with meter() as bar:
            if check:
                found = check_archive(file, bar, limits)
            else:
                # LangGraph's tables are restored too, and LangGraph is slow to import.
                from flows.restore import restore_library

                found = restore_library(home, file, bar, limits)
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(UNCHANGED) from stop
    _report(found, f"{file}: {'whole' if check else 'restored'}", as_json=json)


def _report(manifest: Manifest, done: str, *, as_json: bool) -> None:
    if manifest.missing:
        note(f"homer: {len(manifest.missing)} images are gone or damaged, and not in the back-up")
    counts = {name: manifest.rows(name) for name in ("videos", "clips", "trajectories", "skills")}
    if as_json:
        about = {
            "revision": manifest.revision,
            "made_at": manifest.made_at,
            "images": manifest.blobs,
        }
        return say_json({**about, **counts, "missing": list(manifest.missing)})
    words = ", ".join(f"{count} {_COUNTED[name]}" for name, count in counts.items())
    return say(f"{done} ({words}, {manifest.blobs} images)")


def upgrade() -> None:
    """Create or update Homer's tables in $HOMER_DATABASE_URL.

    The embedded database is kept up to date by itself; a database of yours is changed only by
    this command.

    \b
    Example:
      HOMER_DATABASE_URL=postgresql://me@db/homer homer db upgrade
    """
    url = os.environ.get("HOMER_DATABASE_URL") or EmbeddedPostgres(Home.default()).start()
    changed = migrate(url)
    say(f"the database is {'now' if changed else 'already'} at revision {HEAD}")


def index() -> None:
    """Build the index that a large library is searched through, if it is missing.

    An import or ingestion that makes a library large builds it at its end. Searching gives the
    same kind of answers without it, and takes longer. Others may watch and ask meanwhile.

    \b
    Example:
      homer db index
    """
    with open_store(Home.default()) as store, meter() as bar:
        built = build_index(store, bar)
    say("the index is built" if built else "nothing is missing for a library of this size")


def _group() -> None:
    """Care of a database of your own."""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (backup, restore):
        app.command(no_args_is_help=True)(command)
    group = typer.Typer(
        help="Care of a database of your own.", no_args_is_help=True, rich_markup_mode=None
    )
    group.command("upgrade")(upgrade)
    group.command("index")(index)
    group.callback()(_group)
    app.add_typer(group, name="db")
