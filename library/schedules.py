"""Schedules: what is done by itself, when, and whether it is on. Prefect holds their state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from flows.schedules.kinds import (
    KINDS,
    ScheduleEntry,
    kind_named,
    open_schedules,
    parse_options,
    parse_schedule,
)
from library.params import OnCommandLine, Page
from services.supervisor import ScheduleWorker
from store.home import Home

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    # Prefect reads its environment when it is imported, which ``open_schedules`` sets first.
    from flows.schedules.deployments import ScheduleDeployments

Name = Annotated[str, Field(description="The schedule's name.")]


def _open(home: Home) -> AbstractContextManager[ScheduleDeployments]:
    return open_schedules(home.make())


def schedules(home: Home) -> Page[ScheduleEntry]:
    """List the schedules: when they run, whether they are on, and how the last run ended.

    Examples:
      homer schedule list
      homer schedule list --json
    """
    with _open(home) as deployments:
        entries = deployments.entries()
    there = {entry.kind for entry in entries}
    notes = [
        f"not there yet: {kind.name}, to {kind.does} (homer schedule kinds)"
        for kind in KINDS
        if kind.name not in there
    ]
    if ScheduleWorker(home).address() is None:
        notes.append("nothing carries them out at the moment: homer up")
    return Page(items=tuple(entries), total=len(entries), notes=tuple(notes))


def schedule(home: Home, name: Name) -> ScheduleEntry:
    """Show a schedule: its options, and how its last run ended.

    Examples:
      homer schedule show backup

    Raises:
        NotFound: there is none of that name.
    """
    with _open(home) as deployments:
        return deployments.entry(name)


def schedule_kinds(home: Home) -> str:  # noqa: ARG001 - every act says where it acts
    """List the kinds of schedules, and their options.

    Examples:
      homer schedule kinds
    """
    lines = list[str]()
    for kind in KINDS:
        lines.append(f"{kind.name}: {kind.does} (default: {kind.when})")
        for name, field in kind.options.model_fields.items():
            needed = " (needed)" if field.is_required() else ""
            lines.append(f"  {name}={needed} {field.description or ''}".rstrip())
    return "\n".join(lines)


def set_schedule(
    home: Home,
    name: Name,
    options: Annotated[
        tuple[str, ...],
        Field(description="Options, as 'homer schedule kinds' lists them."),
        OnCommandLine(metavar="KEY=VALUE...", argument=True),
    ] = (),
    kind: Annotated[
        str | None, Field(description="Kind of schedule. Default: the kind called NAME.")
    ] = None,
    when: Annotated[
        str | None,
        Field(
            description="When to run: 'every 5 minutes', 'daily 03:30', 'sunday 03:30', or a cron "
            "line."
        ),
    ] = None,
    off: Annotated[bool, Field(description="Leave the schedule paused.")] = False,
) -> str:
    """Create or change a schedule, and turn it on. Options that are not given stay unchanged.

    Examples:
      homer schedule set watch folder=~/Videos
      homer schedule set backup folder=/mnt/backups keep=30 --when 'sunday 03:30'
      homer schedule set talks --kind fetch urls=https://example.org/feed right=yes

    Raises:
        InputError: an option or time is invalid; the message says which.
        NotFound: there is no such kind.
    """
    with _open(home) as deployments:
        entries = {entry.name: entry for entry in deployments.entries()}
        current = entries.get(name)
        if current is not None and kind not in (None, current.kind):
            # Options of one kind mean nothing to another.
            current = None
        spec = kind_named(kind or (current.kind if current else name))
        # Those of before, and what is given; an empty value removes one.
        given = {**(current.options if current else {}), **parse_options(spec, options)}
        present = {key: value for key, value in given.items() if value not in ("", [""])}
        time = when or (current.when if current else spec.when)
        draft = parse_schedule(name, {**present, "kind": spec.name, "when": time, "on": not off})
        deployments.put(draft)
    return f"{name}: {draft.when}{', paused' if off else ''}"


def pause_schedule(home: Home, name: Name) -> str:
    """Pause a schedule until it is resumed. A run that has started continues.

    Examples:
      homer schedule pause check

    Raises:
        NotFound: there is none of that name.
    """
    with _open(home) as deployments:
        deployments.pause(name)
    return f"{name} is paused"


def resume_schedule(home: Home, name: Name) -> str:
    """Resume a paused schedule.

    Examples:
      homer schedule resume check

    Raises:
        NotFound: there is none of that name.
    """
    with _open(home) as deployments:
        deployments.resume(name)
    return f"{name} is on"


def run_schedule(home: Home, name: Name) -> str:
    """Run a schedule once, now, even if it is paused. It has priority over due runs.

    Examples:
      homer schedule run backup

    Raises:
        NotFound: there is none of that name.
    """
    with _open(home) as deployments:
        found = deployments.run(name)
    waits = ScheduleWorker(home).address() is None
    return f"{found}; it begins with `homer up`" if waits else found


def remove_schedule(home: Home, name: Name) -> str:
    """Remove a schedule.

    Examples:
      homer schedule remove talks

    Raises:
        NotFound: there is none of that name.
        InputError: it is a default schedule, which can only be paused.
    """
    with _open(home) as deployments:
        deployments.remove(name)
    return f"{name} was removed"


def schedule_pool(home: Home) -> str:
    """Print the name of this library's Prefect work pool, for workers of your own.

    Examples:
      homer schedule pool
    """
    with _open(home) as deployments:
        return deployments.pool
