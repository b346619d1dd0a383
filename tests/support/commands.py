"""The command line with the modules of all commands imported."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import typer
from typer.testing import CliRunner, Result

from cli.commands import LazyGroup
from cli.main import app


@cache
def homer() -> Any:
    """The command ``homer``; every group below it has its commands in ``commands``."""
    return loaded(typer.main.get_group(app))


def loaded(group: Any) -> Any:
    """Import the modules of a group's commands, and of the groups within it."""
    for name in list(getattr(group, "commands", {})):
        if isinstance(group, LazyGroup):
            group.load(name)
        loaded(group.commands[name])
    return group


def walk(command: Any, name: str = "homer") -> Iterator[tuple[str, Any]]:
    """A command and all below it, each with the words that it is called by."""
    yield name, command
    for sub, below in getattr(command, "commands", {}).items():
        yield from walk(below, f"{name} {sub}")


def run(*arguments: object, stdin: str | None = None) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(app, [str(one) for one in arguments], input=stdin)


def data(result: Result) -> Any:
    """What a command that succeeded said in one line of JSON."""
    assert result.exit_code == 0, result.stderr
    (line,) = result.stdout.splitlines()
    return json.loads(line)
