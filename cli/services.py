"""``homer up`` and ``homer down``: what runs in the background."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.console import note, say, say_json, say_table
from cli.options import Json


def up(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the app; 0 takes any free one.")
    ] = 8501,
    json: Json = False,
) -> None:
    """Start Postgres, Prefect's server and the app, and say where they are.

    They listen on this machine only and go on in the background until `homer down`.
    """
    from flows.server import PrefectServer
    from store.database import open_store
    from store.home import Home
    from ui.server import AppServer

    home = Home.default().make()
    note("starting; the first time takes half a minute ...")
    with open_store(home) as store:
        database = repr(store)
    rows = [
        ("database", database),
        ("prefect", PrefectServer(home).start()),
        ("app", AppServer(home, port).start()),
    ]
    _show(rows, json)
    if not json:
        say("homer down stops them")


def down(json: Json = False) -> None:
    """Stop the app, Prefect's server and the embedded Postgres; nothing is lost."""
    from flows.server import PrefectServer
    from store.embedded import EmbeddedPostgres
    from store.home import Home
    from ui.server import AppServer

    home = Home.default()
    stopped = {
        "app": AppServer(home).stop(),
        "prefect": PrefectServer(home).stop(),
        "database": EmbeddedPostgres(home).stop(),
    }
    _show([(name, "stopped" if was else "did not run") for name, was in stopped.items()], json)


def _show(rows: list[tuple[str, str]], as_json: bool) -> None:
    say_json(dict(rows)) if as_json else say_table(("service", "state"), rows)


def register(app: typer.Typer) -> None:
    """Adds the commands of this module."""
    app.command()(up)
    app.command()(down)
