"""``homer serve`` and ``homer mcp``: the HTTP API, and the library for MCP clients."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from auth.signing_in import is_loopback
from cli.commands import Profile
from cli.console import note, say
from domain.errors import SetupError
from models.keys_and_packages import MCP
from store.home import Home

STOPPED = "stopped; unfinished questions can be resumed:  homer trajectory"


def serve(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the API. 0: any free port.")
    ] = 8600,
    address: Annotated[
        str,
        typer.Option(
            envvar="HOMER_API_ADDRESS",
            metavar="HOST",
            help="Address to listen on. Other than this machine's own, it requires HOMER_API_KEY.",
        ),
    ] = "127.0.0.1",
    videos: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FOLDER", help="Allow clients to add files of this folder. Repeatable."
        ),
    ] = None,
    questions: Annotated[
        int, typer.Option(min=1, max=12, help="Number of concurrent questions. More are refused.")
    ] = 4,
    body_seconds: Annotated[
        float,
        typer.Option(min=1, max=600, help="Timeout in seconds to receive the body of a request."),
    ] = 30.0,
    profile: Profile = None,
) -> None:
    """Serve the HTTP API until Ctrl-C.

    Clients can list and search videos, ask questions, and add and delete videos. The path /docs of
    the server describes every request. docs/api.md describes keys and limits.

    \b
    Examples:
      homer serve
      homer serve --videos ~/Videos --port 9000
    """
    # FastAPI is slow to import, and help does without.
    from api import server

    def announce(where: str) -> None:
        say(f"the API is at {where}; how it is used: {where}/docs; Ctrl-C stops it")
        warn_of_network(address)

    folders = tuple(videos or ())
    options = server.ServerOptions(address, port, folders, questions, profile, body_seconds)
    with until_stopped(server.UnfinishedQuestions):
        server.serve(Home.default(), options, announce)


def warn_of_network(address: str) -> None:
    """Say that a server is not encrypted, if other machines can reach it."""
    if not is_loopback(address):
        note(f"it listens on {address}, unencrypted: put a proxy with TLS before it")


@contextmanager
def until_stopped(unfinished: type[KeyboardInterrupt]) -> Iterator[None]:
    """Run a server until Ctrl-C; ``unfinished`` ends the process while models are waited for."""
    try:
        yield
    except unfinished:
        note(STOPPED)
        os._exit(130)
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(STOPPED) from stop


AT_A_TERMINAL = "MCP clients start this command and speak to it (docs/mcp.md); Ctrl-C ends it"


def mcp(
    http: Annotated[
        bool, typer.Option("--http", help="Serve HTTP until Ctrl-C, not the client that starts it.")
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="For --http: the port. 0: any free port.")
    ] = 8601,
    address: Annotated[
        str,
        typer.Option(
            envvar="HOMER_API_ADDRESS",
            metavar="HOST",
            help="For --http: the address. Other than this machine's own, it requires "
            "HOMER_API_KEY.",
        ),
    ] = "127.0.0.1",
    questions: Annotated[
        int, typer.Option(min=1, max=12, help="Number of concurrent questions. More are refused.")
    ] = 4,
    strategy: Annotated[
        list[str] | None,
        typer.Option(
            "--strategy", "-s", metavar="NAME", help="Offer its tools as well. Repeatable."
        ),
    ] = None,
    profile: Profile = None,
) -> None:
    """Serve MCP clients: agents that ask and search the videos with tools.

    Without --http it speaks to the client that started it, on standard input and output.
    docs/mcp.md says how to add it to a client.

    \b
    Examples:
      homer mcp
      homer mcp --http --port 9001
    """
    if not MCP.installed:
        raise SetupError(f"serving MCP clients needs the package mcp: {MCP.hint}")
    # The SDK and FastAPI are slow to import, and help does without.
    from api import mcp_server, server

    home, strategies = Home.default(), tuple(strategy or ())
    with until_stopped(server.UnfinishedQuestions):
        if http:
            options = server.ServerOptions(address, port, questions=questions, profile=profile)
            application = partial(mcp_server.make_mcp_app, strategies=strategies)

            def announce(url: str) -> None:
                how = "how it is added to a client: docs/mcp.md; Ctrl-C stops it"
                say(f"the MCP server is at {url}/mcp; {how}")
                warn_of_network(address)

            server.serve(home, options, announce, application)
        else:
            if sys.stdin.isatty():
                note(AT_A_TERMINAL)
            # Else Ctrl-C would wait until a line of standard input is read. Each step is recorded.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            mcp_server.serve_stdio(home, profile, questions, strategies)


def register(app: typer.Typer) -> None:
    app.command()(serve)
    app.command()(mcp)
