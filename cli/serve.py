"""``homer serve``: the HTTP API."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from auth.listen import is_loopback
from cli.console import note, say
from cli.options import Profile
from store.home import Home

STOPPED = "stopped; unfinished questions can be resumed:  homer trajectory"


def serve(
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any free one.")] = 8600,
    address: Annotated[
        str,
        typer.Option(
            envvar="HOMER_API_ADDRESS",
            metavar="HOST",
            help="What it listens on. Beyond this machine it needs HOMER_API_KEY.",
        ),
    ] = "127.0.0.1",
    videos: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FOLDER", help="Files under it may be added over the API; repeatable."
        ),
    ] = None,
    questions: Annotated[
        int, typer.Option(min=1, max=12, help="Questions searched at a time; more are refused.")
    ] = 4,
    body_seconds: Annotated[
        float, typer.Option(min=1, max=600, help="Seconds in which a request's body must come.")
    ] = 30.0,
    profile: Profile = None,
) -> None:
    """Serve the HTTP API until Ctrl-C: videos, search, questions with their answers as they come.

    It listens on this machine only, unless there is a key: HOMER_API_KEY, or the keyring's.
    /docs of its address has all that can be asked.

    \b
    Examples:
      homer serve
      homer serve --videos ~/Videos --port 9000
    """
    # FastAPI is slow to import, and help does without.
    from api import server

    def announce(where: str) -> None:
        say(f"the API is at {where}; how it is used: {where}/docs; Ctrl-C stops it")
        if not is_loopback(address):
            note(f"it listens on {address}, unencrypted: put a proxy with TLS before it")

    try:
        folders = tuple(videos or ())
        options = server.ServerOptions(address, port, folders, questions, profile, body_seconds)
        server.serve(Home.default(), options, announce)
    except server.UnfinishedQuestions:
        note(STOPPED)
        os._exit(130)
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(STOPPED) from stop


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(serve)
