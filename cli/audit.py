"""``homer audit``: who asked, added, deleted, changed and took away what."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from cli.console import note, say_json, say_table
from cli.options import Json
from domain.audit import Deed
from domain.errors import InputError
from store.database import open_store
from store.home import Home
from store.queries.audit import audit_entries
from views.words import plain_line


def audit(
    deed: Annotated[
        list[str] | None,
        typer.Option(metavar="DEED", help="Only this action, such as 'deleted'. Repeatable."),
    ] = None,
    who: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only actions of this user.")
    ] = None,
    of: Annotated[
        str | None, typer.Option(metavar="ID", help="Only actions on ids that begin with ID.")
    ] = None,
    since: Annotated[
        datetime | None, typer.Option(help="Only since then, such as 2026-01-31.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Number of latest entries to list.")] = 50,
    json: Json = False,
) -> None:
    """List the audit log: who asked, added, deleted, exported or changed what, and when.

    An entry has ids and no content. Entries stay when a video is deleted, and cannot be changed.

    \b
    Examples:
      homer audit --deed deleted
      homer audit --who ann --since 2026-01-31 --json
    """
    known = {str(kind) for kind in Deed}
    for name in deed or ():
        if name not in known:
            raise InputError(f"--deed {name!r} is none of: {', '.join(sorted(known))}")
    wanted = tuple(Deed(name) for name in deed or ())
    start = since.astimezone() if since else None
    with open_store(Home.default()) as store, store.begin() as session:
        found = audit_entries(session, deeds=wanted, who=who, subject=of, since=start, limit=limit)
    if json:
        return say_json([entry.model_dump(mode="json") for entry in found])
    if not found:
        return note("nothing of that kind is on record")
    rows = (
        (f"{e.at:%Y-%m-%d %H:%M:%S}", plain_line(e.who), e.deed, plain_line(e.subject))
        for e in found
    )
    return say_table(("when", "who", "did", "what"), rows)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(audit)
