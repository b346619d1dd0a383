"""The ``homer`` command. Each command's work is imported when it runs, so help comes at once."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from cli import (
    ask,
    audit,
    backup,
    captions,
    check,
    database,
    doctor,
    evals,
    forks,
    ingest,
    library,
    models,
    people,
    retain,
    retry,
    schedules,
    search,
    serve,
    services,
    skills,
    trajectories,
    watch,
)
from cli.edge import STOPPED, ErrorBoundary
from models.lazy_packages import defer_packages
from services.job_status import ACTING, END, write_exit_code
from store.files import set_private_umask

GUIDE = """Ask a long video a question and trust the answer.

Homer watches videos clip by clip, keeps what was said, read and seen in a memory that lasts,
and answers questions about it with the times that support the answer.

\b
Start with:
  homer ingest talk.mp4
  homer ask "Who opens the talk?" --video talk
"""

app = typer.Typer(
    name="homer",
    help=GUIDE,
    cls=ErrorBoundary,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"homer {version('homer-video')}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    debug: Annotated[
        bool, typer.Option("--debug", envvar="HOMER_DEBUG", help="Show where an error came from.")
    ] = False,
    log_level: Annotated[
        str | None,
        typer.Option(
            metavar="LEVEL",
            envvar="HOMER_LOG_LEVEL",
            help="What the log tells: debug, info, warning or error.",
        ),
    ] = None,
    version: Annotated[  # noqa: ARG001 - the callback acts on it
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Options that stand before the command."""
    from store.home import Home
    from telemetry.logging_setup import set_up_telemetry

    context.obj = {"debug": debug}
    set_up_telemetry(Home.default(), log_level)


app.callback(help=GUIDE)(options)
for module in (
    ingest,
    watch,
    retry,
    ask,
    library,
    audit,
    retain,
    backup,
    people,
    skills,
    check,
    search,
    trajectories,
    forks,
    captions,
    models,
    database,
    doctor,
    evals,
    schedules,
    serve,
    services,
):
    module.register(app)


def _act_for(who: str) -> None:
    from domain.audit import acting_user

    acting_user.set(who)


def main() -> None:
    """The console script. After Ctrl-C nothing is waited for: what is done is stored."""
    set_private_umask()
    job = os.environ.pop(END, "")
    if who := os.environ.pop(ACTING, ""):
        _act_for(who)
    defer_packages()
    try:
        app(prog_name="homer")
    except SystemExit as end:
        if job:
            write_exit_code(Path(job), int(end.code or 0))
        if end.code != STOPPED:
            raise
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(STOPPED)
