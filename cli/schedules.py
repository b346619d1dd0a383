"""``homer schedule``: what is done by itself, when, and whether it is on."""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from cli.console import note, say, say_json, say_table
from cli.options import Json
from flows.schedules.api import open_schedules
from flows.schedules.changing import changed_schedule
from flows.schedules.kinds import KINDS
from flows.schedules.worker import ScheduleWorker
from store.home import Home
from views.words import plain_line, shortened

if TYPE_CHECKING:
    # Prefect reads its environment when it is imported, which ``open_schedules`` sets first.
    from flows.schedules.deployments import ScheduleDeployments, ScheduleEntry

GUIDE = """List and change the jobs that run on a schedule while 'homer up' runs.

Only one is on by default: a nightly check of the memory. A schedule is a Prefect deployment, which
can also be paused and resumed in the app or on Prefect's pages.

\b
Examples:
  homer schedule
  homer schedule set watch folder=~/Videos
  homer schedule pause watch
"""

Name = Annotated[str, typer.Argument(metavar="NAME", help="The schedule's name.")]


def _open() -> AbstractContextManager[ScheduleDeployments]:
    return open_schedules(Home.default().make())


def list_all(json: Json = False) -> None:
    """List the schedules: when they run, whether they are on, and how the last run ended.

    \b
    Examples:
      homer schedule list
      homer schedule list --json
    """
    with _open() as deployments:
        entries = deployments.entries()
    if json:
        return say_json([entry.model_dump(mode="json") for entry in entries])
    heads = ("schedule", "kind", "when", "state", "next", "last", "at")
    say_table(heads, (_row(entry) for entry in entries))
    for entry in entries:
        if entry.last and entry.last.told:
            say(f"{entry.name}: {plain_line(entry.last.told)}")
    return _remind(entries)


def _row(entry: ScheduleEntry) -> tuple[object, ...]:
    last = entry.last
    ended = (last.state, _clock(last.at)) if last else ("", "")
    return (
        entry.name,
        entry.kind,
        entry.when,
        "on" if entry.on else "paused",
        _clock(entry.next),
        *ended,
    )


def _clock(at: datetime | None) -> str:
    return f"{at.astimezone():%Y-%m-%d %H:%M}" if at else ""


def _remind(entries: list[ScheduleEntry]) -> None:
    there = {entry.kind for entry in entries}
    for kind in KINDS:
        if kind.name not in there:
            note(f"not there yet: {kind.name}, to {kind.does} (homer schedule kinds)")
    if ScheduleWorker(Home.default()).address() is None:
        note("nothing carries them out at the moment: homer up")


def kinds() -> None:
    """List the kinds of schedules, and their options.

    \b
    Example:
      homer schedule kinds
    """
    for kind in KINDS:
        say(f"{kind.name}: {kind.does} (default: {kind.when})")
        for name, field in kind.options.model_fields.items():
            needed = " (needed)" if field.is_required() else ""
            say(f"  {name}={needed} {field.description or ''}".rstrip())


def put(
    name: Name,
    options: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE...", help="Options, as 'homer schedule kinds' lists them."
        ),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(metavar="KIND", help="Kind of schedule. Default: the kind called NAME."),
    ] = None,
    when: Annotated[
        str | None,
        typer.Option(
            metavar="WHEN",
            help="When to run: 'every 5 minutes', 'daily 03:30', 'sunday 03:30', or a cron line.",
        ),
    ] = None,
    off: Annotated[bool, typer.Option("--off", help="Leave the schedule paused.")] = False,
) -> None:
    """Create or change a schedule, and turn it on. Options that are not given stay unchanged.

    \b
    Examples:
      homer schedule set watch folder=~/Videos
      homer schedule set backup folder=/mnt/backups keep=30 --when 'sunday 03:30'
      homer schedule set talks --kind fetch urls=https://example.org/feed right=yes
    """
    with _open() as deployments:
        entry = changed_schedule(deployments.entries(), name, kind, when, options or [], on=not off)
        deployments.put(entry)
    say(f"{name}: {entry.when}{', paused' if off else ''}")


def pause(name: Name) -> None:
    """Pause a schedule until it is resumed. A run that has started continues.

    \b
    Example:
      homer schedule pause check
    """
    with _open() as deployments:
        deployments.pause(name)
    note(f"{name} is paused")


def resume(name: Name) -> None:
    """Resume a paused schedule.

    \b
    Example:
      homer schedule resume check
    """
    with _open() as deployments:
        deployments.resume(name)
    note(f"{name} is on")


def run(name: Name) -> None:
    """Run a schedule once, now, even if it is paused. It has priority over due runs.

    \b
    Example:
      homer schedule run backup
    """
    with _open() as deployments:
        found = deployments.run(name)
    say(found)
    if ScheduleWorker(Home.default()).address() is None:
        note("it begins with `homer up`")


def remove(name: Name) -> None:
    """Remove a schedule.

    \b
    Example:
      homer schedule remove talks
    """
    with _open() as deployments:
        deployments.remove(name)
    note(f"{name} was removed")


def pool() -> None:
    """Print the name of this library's Prefect work pool, for workers of your own.

    \b
    Example:
      homer schedule pool
    """
    with _open() as deployments:
        say(deployments.pool)


def show(name: Name, json: Json = False) -> None:
    """Show a schedule: its options, and how its last run ended.

    \b
    Example:
      homer schedule show backup
    """
    with _open() as deployments:
        entry = deployments.entry(name)
    if json:
        return say_json(entry.model_dump(mode="json"))
    say(f"{entry.name}: {entry.kind}, {entry.when}, {'on' if entry.on else 'paused'}")
    for key, value in entry.options.items():
        say(f"  {key} = {shortened(str(value))}")
    if entry.last:
        last = entry.last
        say(f"last: {last.state} {_clock(last.at)} {plain_line(last.told)}".rstrip())
    return None


def _list_by_default(context: typer.Context) -> None:
    """List the schedules for ``homer schedule`` without a command."""
    if context.invoked_subcommand is None:
        list_all()


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(invoke_without_command=True, rich_markup_mode=None)
    group.callback()(_list_by_default)
    group.command("list")(list_all)
    group.command()(kinds)
    group.command()(pool)
    group.command("set", no_args_is_help=True)(put)
    for command in (show, pause, resume, run, remove):
        group.command(no_args_is_help=True)(command)
    app.add_typer(group, name="schedule", help=GUIDE)
