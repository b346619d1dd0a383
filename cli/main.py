"""The ``homer`` command: its options, and the list of its commands."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Annotated, ClassVar

import typer

from cli.edge import STOPPED, ErrorBoundary
from cli.lazy_group import LazyGroup
from services.job_status import ACTING, END, write_exit_code
from store.files import set_private_umask
from store.home import Home
from telemetry.logging_setup import set_up_telemetry

GUIDE = """Ask a long video a question and trust the answer.

Homer watches videos clip by clip, keeps what was said, read and seen in a memory that lasts,
and answers questions about it with the times that support the answer.

\b
Start with:
  homer ingest talk.mp4
  homer ask "Who opens the talk?" --video talk
"""

COMMANDS = {
    "ingest": ("ingest", "Watch videos into memory."),
    "watch": (
        "watch",
        "Watch a live source as it comes; questions are answered meanwhile, as of then.",
    ),
    "retry": ("retry", "Try the failed clips of a video again, however often they failed."),
    "ask": ("ask", "Ask a question and get an answer with the times that support it."),
    "videos": (
        "library",
        "List the videos in the library; one that nothing watches any more is paused.",
    ),
    "show": ("library", "Show what is known of a video: its clips, people, segments and edges."),
    "dump": ("library", "Print all that was learned of a video as canonical JSON lines."),
    "export": (
        "library",
        "Write everything about a video into one zip file: rows, vectors, images, answers.",
    ),
    "delete": (
        "removal",
        "Delete a video from memory: every row, vector, image, checkpoint and trajectory of it.",
    ),
    "audit": (
        "audit",
        "List who asked, added, deleted, forgot, exported, backed up, signed in, and "
        "changed people.",
    ),
    "retain": (
        "removal",
        "Take from each video what its age does not keep: images first, at last all of it.",
    ),
    "backup": ("database", "Back the whole library up into one file, as it is at this moment."),
    "restore": ("database", "Fill an empty library from a back-up."),
    "check": (
        "library",
        "Check the event graph of a video as a whole, and every stored image of it.",
    ),
    "search": (
        "search",
        "Search the memory once, with scores and times; without --video in all of it.",
    ),
    "trajectory": (
        "trajectories",
        "Show the rounds that led to an answer; without an id, list the latest answers.",
    ),
    "replay": (
        "forks",
        "Run an answer's trajectory again from its record, and see that the same comes of it.",
    ),
    "fork": ("forks", "Go on from a round of a trajectory as a new one, with something changed."),
    "diff": (
        "forks",
        "Show where two trajectories part: in what they did, what they saw, and what "
        "they answered.",
    ),
    "import": (
        "captions",
        "Take over a video that was exported, or remember videos from their captions alone.",
    ),
    "doctor": (
        "doctor",
        "Check the database, the profile's models, codecs and extras; say how to fix each.",
    ),
    "serve": (
        "serve",
        "Serve the HTTP API until Ctrl-C: videos, search, questions with their answers "
        "as they come.",
    ),
    "up": (
        "services",
        "Start Postgres, Prefect's server, the app and what carries out schedules; say "
        "where they are.",
    ),
    "down": (
        "services",
        "Stop the app, schedules, Prefect's server and the embedded Postgres; nothing is lost.",
    ),
    "password": (
        "services",
        "Give the app a password, which it asks for from then on; asks for it where no "
        "file is named.",
    ),
    "people": ("people", "Show the people of a video, and put right who is who."),
    "skills": (
        "skills",
        "Show, add and ban skills: short advice that questions like it are given.",
    ),
    "models": ("models", "Show the model files of a profile: what is there, licence, size."),
    "db": ("database", "Care of a database of your own."),
    "eval": ("evals", "Measure how well questions with known answers are answered."),
    "schedule": ("schedules", "Show and change what Homer does by itself while `homer up` runs."),
}
"""Each command's module, and the first sentence of its help."""


class Commands(ErrorBoundary, LazyGroup):
    """Homer's commands."""

    entries: ClassVar[Mapping[str, tuple[str, str]]] = COMMANDS


app = typer.Typer(
    name="homer",
    help=GUIDE,
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"homer {installed_version('homer-video')}")
        raise typer.Exit


@app.callback(help=GUIDE)
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
    """Set up logging; ``help`` above is what users read."""
    context.obj = {"debug": debug}
    set_up_telemetry(Home.default(), log_level)


def _act_for(user: str) -> None:
    # Pydantic, which is slow to import: jobs of the app and the API need it, ``--help`` does not.
    from domain.audit import acting_user

    acting_user.set(user)


def main() -> None:
    """Run the console script. After Ctrl-C it waits for nothing: finished work is stored."""
    set_private_umask()
    job = os.environ.pop(END, "")
    if user := os.environ.pop(ACTING, ""):
        _act_for(user)
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
