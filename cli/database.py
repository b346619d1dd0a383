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
from store.backup import RIGHTS_TABLES, back_up, check_archive
from store.database import open_store
from store.embedded import EmbeddedPostgres
from store.home import Home
from store.migrations import HEAD, migrate
from store.vector_index import build_index

UNCHANGED = "stopped; nothing was changed"

_COUNTED = {"videos": "videos", "clips": "clips", "trajectories": "answers", "skills": "skills"}


def backup(
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="File to write, which must not exist.")
    ],
    json: Json = False,
) -> None:
    """Back up the whole library to one file.

    It contains all rows, vectors and images, answers with their checkpoints, and skills. It does
    not contain video files, weights or homer.toml. Videos can be watched and questions asked
    meanwhile.

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
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File that 'homer backup' wrote.")],
    check: Annotated[
        bool, typer.Option("--check", help="Only check that the file is complete.")
    ] = False,
    rights: Annotated[
        bool, typer.Option("--rights", help="Also restore who may see what.")
    ] = False,
    json: Json = False,
) -> None:
    """Restore a back-up into an empty library.

    The whole file is checked before anything is changed. A library that is not empty is refused:
    set HOMER_HOME to an empty folder, or HOMER_DATABASE_URL to an empty database.

    Rights stay enforced where they were. Who has them is restored with --rights only.

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

                found = restore_library(home, file, bar, limits, rights=rights)
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(UNCHANGED) from stop
    if given := sum(found.rows(table) for table in RIGHTS_TABLES):
        hold = "hold now: homer rights" if rights else "are left out: restore them with --rights"
        note(f"homer: {given} rights and members of groups in the file {hold}")
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
    """Create or upgrade Homer's tables in the database of $HOMER_DATABASE_URL.

    Homer upgrades the embedded database by itself, and a database of yours only by this command.

    \b
    Example:
      HOMER_DATABASE_URL=postgresql://me@db/homer homer db upgrade
    """
    url = os.environ.get("HOMER_DATABASE_URL") or EmbeddedPostgres(Home.default()).start()
    changed = migrate(url)
    say(f"the database is {'now' if changed else 'already'} at revision {HEAD}")


def index() -> None:
    """Build the search index of a large library, if it is missing.

    'homer ingest' and 'homer import' build it once a library is large. Without it, searches over
    the whole library take longer. Videos can be watched and questions asked meanwhile.

    \b
    Example:
      homer db index
    """
    with open_store(Home.default()) as store, meter() as bar:
        built = build_index(store, bar)
    say("the index is built" if built else "nothing is missing for a library of this size")


def _group() -> None:
    """Upgrade the tables of a database, and build its search index."""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (backup, restore):
        app.command(no_args_is_help=True)(command)
    group = typer.Typer(
        help="Upgrade the tables of a database, and build its search index.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    group.command("upgrade")(upgrade)
    group.command("index")(index)
    group.callback()(_group)
    app.add_typer(group, name="db")
