"""``homer build``: the memory of a strategy, from what was watched."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.console import note, say, say_json
from cli.options import Json, OneVideo, Profile, split_names
from cli.progress import import_progress, meter
from flows.build import build as build_memory
from flows.workspace import open_workspace
from strategies.registry import all_strategies, find_strategy
from views.words import plain_line


def build(
    video: OneVideo,
    memory: Annotated[
        list[str] | None,
        typer.Option(
            "--memory",
            "-m",
            metavar="NAME,...",
            help="Of these strategies, see 'homer strategies'. Repeatable. Default: all that build "
            "one.",
        ),
    ] = None,
    profile: Profile = None,
    json: Json = False,
) -> None:
    """Build the memory of a strategy from what was watched of a video.

    Videos need not be watched again. After an interruption the same command resumes, and on a video
    that was watched further it builds what is missing.

    \b
    Examples:
      homer build talk
      homer build talk --memory NAME
    """
    wanted = [find_strategy(name) for name in split_names(memory or [])]
    chosen = wanted or [strategy for strategy in all_strategies() if strategy.builder is not None]
    results = []
    try:
        with open_workspace(profile) as workspace, meter() as bar:
            for strategy in chosen:
                move = import_progress(bar, strategy.name)
                results.append(build_memory(workspace, video, strategy, move))
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt("stopped; the same command builds the rest") from stop
    if json:
        return say_json(
            [
                {"video": r.video.id, "strategy": r.strategy, "built": r.clips, "clips": r.total}
                for r in results
            ]
        )
    for result in results:
        title = plain_line(result.video.title)
        say(f"{result.strategy}: {result.clips} clips of {title} built, of {result.total}")
    note("ask with:  homer ask QUESTION --strategy NAME")
    return None


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(no_args_is_help=True)(build)
