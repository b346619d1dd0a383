"""``homer db``: care of a database of one's own."""

from __future__ import annotations

import typer

from cli.console import say


def upgrade() -> None:
    """Create or update Homer's tables in $HOMER_DATABASE_URL.

    The embedded database is kept up to date by itself; a database of yours is changed only by
    this command.

    \b
    Example:
      HOMER_DATABASE_URL=postgresql://me@db/homer homer db upgrade
    """
    import os

    from store.embedded import EmbeddedPostgres
    from store.home import Home
    from store.migrations import HEAD, migrate

    url = os.environ.get("HOMER_DATABASE_URL") or EmbeddedPostgres(Home.default()).start()
    changed = migrate(url)
    say(f"the database is {'now' if changed else 'already'} at revision {HEAD}")


def register(app: typer.Typer) -> None:
    """Adds the commands of this module."""
    group = typer.Typer(
        help="Care of a database of your own.", no_args_is_help=True, rich_markup_mode=None
    )
    group.command("upgrade")(upgrade)
    group.callback()(_group)
    app.add_typer(group, name="db")


def _group() -> None:
    """Care of a database of your own."""
