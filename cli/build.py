"""``homer build``: the memory of a strategy, from what was watched."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.console import note, say, say_json
from cli.options import Json, OneVideo, Profile, split_names
from cli.progress import ProgressMeter, meter
from flows.build import Built, OnUse
from flows.builder_model import ModelUse
from flows.reported_build import build_reported
from flows.reporting import connect_to_prefect
from flows.workspace import open_workspace
from store.progress import import_progress
from strategies.registry import all_strategies, find_strategy
from views.words import format_time, plain_line


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
    again: Annotated[
        bool,
        typer.Option(
            "--again",
            help="Rebuild it: what was built before is deleted, except frames, and a language "
            "model is asked again.",
        ),
    ] = False,
    direct: Annotated[
        bool, typer.Option("--direct", help="Run in this process, without Prefect's server.")
    ] = False,
    profile: Profile = None,
    json: Json = False,
) -> None:
    """Build the memory of a strategy from what was watched of a video.

    Videos need not be watched again. After an interruption the same command resumes, and on a video
    that was watched further it builds what is missing. Where a language model writes it, what it
    will take is said as far as it is known, and what it took.

    \b
    Examples:
      homer build talk
      homer build talk --memory NAME
      homer build talk --memory NAME --again
    """
    wanted = [find_strategy(name) for name in split_names(memory or [])]
    chosen = wanted or [strategy for strategy in all_strategies() if strategy.builds_memory]
    results = []
    try:
        with open_workspace(profile) as workspace, meter() as bar:
            api = None if direct else connect_to_prefect(workspace.home, note)
            for strategy in chosen:
                move = import_progress(bar, strategy.name)
                use = show_use(bar, strategy.name)
                results.append(
                    build_reported(workspace, video, strategy, move, api, again=again, on_use=use)
                )
    except KeyboardInterrupt as stop:
        rest = "without --again the same command" if again else "the same command"
        raise KeyboardInterrupt(f"stopped; {rest} builds the rest") from stop
    if json:
        return say_json([_as_json(result) for result in results])
    for result in results:
        title = plain_line(result.video.title)
        took = f"; {result.use}" if result.use else ""
        built = f"{result.clips} clips of {title} built, of {result.total}"
        say(f"{result.strategy}: {built}, in {result.seconds:.0f} s{took}")
        if result.remark:
            note(f"{result.strategy}: {result.remark}")
    note("ask with:  homer ask QUESTION --strategy NAME")
    return None


def show_use(bar: ProgressMeter, name: str) -> OnUse:
    """Return a callback that says what a build will take, then beside the bar what it took."""

    def show(so_far: ModelUse, whole: ModelUse | None) -> None:
        if whole and not whole.calls:
            return  # Nothing that was seen so far gave the model anything to write.
        if so_far.calls and whole:
            bar.aside(f"{so_far} of about {whole}")
        elif whole:
            took = format_time(round(whole.seconds * 1_000))
            bar.say(f"{name}: about {whole}, {took} of replies, as builds on record took")
        elif not so_far.calls:
            bar.say(f"{name}: no build by this model is on record; see its cost after a step")

    return show


def _as_json(result: Built) -> dict[str, str | int | float]:
    use = result.use or ModelUse()
    return {
        "video": result.video.id,
        "strategy": result.strategy,
        "built": result.clips,
        "clips": result.total,
        "seconds": round(result.seconds, 1),
        "calls": use.calls,
        "tokens_in": use.tokens_in,
        "tokens_out": use.tokens_out,
        "cost_usd": use.cost_usd,
    }


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(no_args_is_help=True)(build)
