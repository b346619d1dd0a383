"""A group of commands whose modules are imported only when one of them is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup


class LazyGroup(TyperGroup):
    """A group that lists its commands without importing them.

    A command's module is imported when the command is run or its own help is requested.

    Attributes:
        entries: by the name of each command, its module in ``cli`` and the first sentence of its
            help. The module's ``register(app)`` adds the command to a Typer app;
            ``door`` makes it from the registry.
        groups: names of commands by the heading that the help lists them under; none: one list.
        path: the words before a command's name in the registry, ``eval ``.
    """

    entries: ClassVar[Mapping[str, tuple[str, str]]] = {}
    groups: ClassVar[Mapping[str, Sequence[str]]] = {}
    path: ClassVar[str] = ""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self._loaded: set[str] = set()
        for name, (_, sentence) in self.entries.items():
            self.commands[name] = TyperCommand(name, help=sentence, rich_markup_mode=None)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that ``args`` begin with, and import it."""
        if args and args[0] in self.entries:
            self.load(args[0])
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands under their headings."""
        if not self.groups:
            super().format_commands(ctx, formatter)
        for heading, names in self.groups.items():
            with formatter.section(heading):
                rows = [(name, self.entries[name][1]) for name in names]
                formatter.write_dl(rows)

    def load(self, name: str) -> None:
        """Import a command, once: what its module registers replaces the entry in the list."""
        if name in self._loaded:
            return
        module, _ = self.entries[name]
        app = typer.Typer(rich_markup_mode=None)
        if module == "door":
            import_module("cli.door").register(app, f"{self.path}{name}")
        else:
            import_module(f"cli.{module}").register(app)
        self.commands[name] = typer.main.get_group(app).commands[name]
        self._loaded.add(name)
