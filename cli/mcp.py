"""``homer mcp``: the library for MCP clients."""

from __future__ import annotations

import signal
import sys
from functools import partial
from typing import Annotated

import typer

from cli.console import note, say
from cli.options import Profile
from cli.serve import until_stopped, warn_of_network
from domain.errors import SetupError
from models.extras import MCP
from store.home import Home

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
            server.serve(home, options, partial(_announce, address), application)
        else:
            if sys.stdin.isatty():
                note(AT_A_TERMINAL)
            # Else Ctrl-C would wait until a line of standard input is read. Each step is recorded.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            mcp_server.serve_stdio(home, profile, questions, strategies)


def _announce(address: str, url: str) -> None:
    say(
        f"the MCP server is at {url}/mcp; how it is added to a client: docs/mcp.md; Ctrl-C stops it"
    )
    warn_of_network(address)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(mcp)
