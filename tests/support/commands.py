"""The command line with the modules of all commands imported."""

from __future__ import annotations

from functools import cache
from typing import Any

import typer

from cli.lazy_group import LazyGroup
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
