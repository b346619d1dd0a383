"""The ``homer`` command: its options, and the list of its commands."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Annotated, ClassVar

import typer

from cli.commands import STOPPED, ErrorBoundary, LazyGroup
from services.daemon import ACTING, END, write_exit_code
from store.files import set_private_umask
from store.home import Home
from telemetry.logs import set_up_telemetry

GUIDE = """Ask a long video a question and trust the answer.

Homer watches videos clip by clip and stores what was said, read and seen. It answers questions by
searching this memory, and cites the times in the video that support the answer.

\b
Start with:
  homer ingest talk.mp4
  homer ask "Who opens the talk?" --video talk
  homer ask "Who mentions the budget?"          about all videos
  homer search "the budget"                     what was said, read and seen
  homer up                                      the app in the browser
"""

COMMANDS = {
    "ingest": ("door", "Watch video files and store what was said, read and seen."),
    "watch": ("door", "Watch a live source: a camera, an RTSP or HLS stream, or a pipe."),
    "retry": ("door", "Retry the failed clips of a video, however often they have failed."),
    "ask": ("door", "Answer a question, with the times in the video that support the answer."),
    "resume": ("door", "Continue an interrupted question after its last finished step."),
    "batch": ("answers", "Answer the questions of a file, several at a time."),
    "compare": ("door", "Answer a question by several strategies, and compare them."),
    "build": ("door", "Build the memory of a strategy from what was watched of a video."),
    "tool": (
        "door",
        "Use a tool of a strategy once, without a language model, and print what it finds.",
    ),
    "tools": (
        "door",
        "List the tools of strategies: what they look things up with when they answer a question.",
    ),
    "strategies": ("door", "List the strategies: ways of remembering and of asking."),
    "videos": ("door", "List the videos in the library."),
    "show": ("door", "Show what is in memory of a video: clips, people, segments and edges."),
    "dump": ("door", "Print everything learned from a video as canonical JSON lines."),
    "outline": ("door", "Print the chapters of a video with their times."),
    "clip": ("door", "Cut a moment out of a video into a file of its own."),
    "export": ("door", "Export a video to a zip file: rows, vectors, images and answers."),
    "delete": ("door", "Delete a video, or a span of it, from memory."),
    "audit": (
        "door",
        "List the audit log: who asked, added, deleted, exported or changed what, and when.",
    ),
    "retain": ("door", "Delete data of old videos, by the retention tiers of the profile."),
    "reembed": (
        "door",
        "Change a library to the text encoder and the image-text model of a profile.",
    ),
    "backup": ("door", "Back up the whole library to one file."),
    "restore": ("door", "Restore a back-up into an empty library."),
    "check": ("door", "Check the event graph and the stored images of a video for errors."),
    "search": (
        "door",
        "Search the memory once, and print what is close with scores and times, 10 at most.",
    ),
    "trajectory": (
        "door",
        "Show the rounds that led to an answer, or list the latest answers.",
    ),
    "replay": ("door", "Replay an answer from its record, and compare every event."),
    "fork": ("door", "Continue an answer from one of its rounds, with something changed."),
    "diff": ("door", "Compare two trajectories: their actions, evidence and answers."),
    "import": (
        "door",
        "Import a video from an export, or from timed captions without its frames.",
    ),
    "doctor": ("door", "Check this machine, and say how to fix what is missing."),
    "serve": ("serve", "Serve the HTTP API until Ctrl-C."),
    "mcp": ("serve", "Serve MCP clients: agents that ask and search the videos with tools."),
    "up": (
        "services",
        "Start the app, Postgres, Prefect's server and the schedule worker in the background.",
    ),
    "down": (
        "services",
        "Stop the app, the schedule worker, Prefect's server and the embedded Postgres.",
    ),
    "password": ("services", "Set the password of the app, or remove it."),
    "people": ("door", "List the people of the library or a video, and correct who is who."),
    "skills": (
        "door",
        "List, add and ban skills: short advice on how to search for one kind of question.",
    ),
    "models": ("door", "List the model files of a profile, with state, size and licence."),
    "db": ("door", "Upgrade the tables of a database, and build its search index."),
    "eval": ("commands", "Measure answers to questions whose right answers are known."),
    "train": ("door", "Export judged answers as training data for a language model."),
    "alert": ("door", "Ask standing questions, which are judged on every new clip."),
    "rights": ("door", "Say who may see which videos."),
    "share": ("door", "Share one answer or moment by a link that expires."),
    "recap": (
        "door",
        "Sum up a day or an hour of a video, or of all, from its events, with citations.",
    ),
    "schedule": (
        "door",
        "List and change the jobs that run on a schedule while 'homer up' runs.",
    ),
}
"""Each command's module, and the first sentence of its help."""


GROUPS = {
    "Start": ("ingest", "watch", "ask", "batch", "search", "up", "down"),
    "Look inside": (
        "videos",
        "show",
        "trajectory",
        "replay",
        "resume",
        "fork",
        "diff",
        "dump",
        "tool",
        "tools",
        "outline",
        "clip",
        "recap",
        "share",
    ),
    "Correct": ("people", "retry", "delete"),
    "Strategies": ("strategies", "build", "compare"),
    "Maintain": (
        *("doctor", "models", "db", "check", "reembed", "retain", "export", "import"),
        *("backup", "restore", "schedule", "alert", "serve", "mcp", "password"),
        *("rights", "audit"),
    ),
    "Evaluate and learn": ("eval", "skills", "train"),
}
"""The commands by what they are for, in the order of the help."""


class Commands(ErrorBoundary, LazyGroup):
    """Homer's commands."""

    entries: ClassVar[Mapping[str, tuple[str, str]]] = COMMANDS
    groups: ClassVar[Mapping[str, Sequence[str]]] = GROUPS


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
        bool, typer.Option("--debug", envvar="HOMER_DEBUG", help="Print the traceback of an error.")
    ] = False,
    log_level: Annotated[
        str | None,
        typer.Option(
            metavar="LEVEL",
            envvar="HOMER_LOG_LEVEL",
            help="Least level that is logged: debug, info, warning or error.",
        ),
    ] = None,
    version: Annotated[  # noqa: ARG001 - the callback acts on it
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Set up logging; ``help`` above is what users read."""
    context.obj = {"debug": debug}
    set_up_telemetry(Home.default(), log_level)


def main() -> None:
    """Run the console script. After Ctrl-C it waits for nothing: finished work is stored."""
    set_private_umask()
    job = os.environ.pop(END, "")
    if user := os.environ.pop(ACTING, ""):
        # Pydantic, slow to import: jobs of the app and the API need it, ``--help`` does not.
        from domain.rights import acting_user

        acting_user.set(user)
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
