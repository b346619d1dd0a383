"""``homer watch``: a live source, watched as it comes."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, current_thread, main_thread
from typing import Annotated

import typer

from cli.console import note, say, say_json
from cli.options import Json, Profile, read_lines
from domain.words import plain_line
from flows.build import check_builds
from flows.live_stream import open_stream, watch_stream
from flows.workspace import open_workspace
from library.params import split_names
from library.progress import LiveReporter
from perception.live import live_source
from strategies.registry import find_strategy

_STOPPING = "stopping: what came is still watched; Ctrl-C again stops at once"
_AT_ONCE = "stopped at once: what was not in memory yet is a gap; run the same command to continue"


def watch(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="rtsp://, http(s):// (HLS), a camera (/dev/video0), a FIFO, - for stdin, or @FILE "
            "with the address.",
        ),
    ],
    title: Annotated[
        str,
        typer.Option(
            "--title",
            "-t",
            help="Title of the video. The same source under another title is another video.",
        ),
    ] = "",
    profile: Profile = None,
    direct: Annotated[
        bool, typer.Option("--direct", help="Run in this process, without Prefect's server.")
    ] = False,
    away: Annotated[
        float | None,
        typer.Option(
            "--away",
            metavar="SECONDS",
            min=0,
            help="End after so long without a connection. Default: reconnect without end.",
        ),
    ] = None,
    memory: Annotated[
        list[str] | None,
        typer.Option(
            "--memory",
            metavar="NAME,...",
            help="Keep the frames of these strategies, and build what is built while watching: see "
            "'homer strategies'. 'homer build' builds the rest. Repeatable. Default: as set.",
        ),
    ] = None,
    record: Annotated[
        bool,
        typer.Option(
            "--record", help="Store what comes as well, so that cited moments can be played."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Watch a live source: a camera, an RTSP or HLS stream, or a pipe.

    Questions can be asked meanwhile. Ctrl-C ends the stream after storing what has arrived. The
    same command resumes it later, as the same video with a gap.

    \b
    Examples:
      homer watch rtsp://camera.local/live --title entrance
      homer watch /dev/video0 --away 600 --record
      ffmpeg ... | homer watch - --title talk
    """
    live, stop = live_source(read_lines([source])[0], title), Event()
    with open_workspace(profile) as opened, _until_stopped(stop):
        workspace = opened.with_memory_of(split_names(memory))
        if record:
            workspace = workspace.with_recording()
        for name in workspace.settings.memory.strategies:
            check_builds(find_strategy(name))
        reporter = LiveReporter(lambda text: note(plain_line(text)), "; Ctrl-C ends it")
        with open_stream(workspace, live, stop=stop, said=reporter.said, away_s=away) as work:
            outcome = watch_stream(work, reporter, direct=direct)
            state = work.state()
    if json:
        row = {"video": live.id, "source": live.name, "clips": state.clips, "failed": state.failed}
        say_json(row)
    else:
        say(f"{plain_line(live.label)}: {outcome}, id {live.id}")


@contextmanager
def _until_stopped(stop: Event) -> Iterator[None]:
    """Set ``stop`` on SIGINT or SIGTERM; the second signal stops at once."""
    if current_thread() is not main_thread():
        yield
        return

    def on_signal(_number: int, _frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt(_AT_ONCE)
        stop.set()
        note(_STOPPING)

    before = {
        number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(no_args_is_help=True)(watch)
