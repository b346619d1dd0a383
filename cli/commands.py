"""What the commands add to Typer: errors as exit codes, groups loaded when needed, shared options.

======  ===========================================================
code    meaning
======  ===========================================================
0       done
1       a fault in Homer itself
2       the input or the command line cannot be used
3       something is missing on this machine (``homer doctor``)
4       a model failed, or some clips failed: run the same command to try them again
5       time, tokens or rounds ran out
6       a replay went another way than its record
130     stopped with Ctrl-C; nothing is lost
======  ===========================================================
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup

from cli.console import note
from domain.errors import HomerError, InputError
from domain.words import printable
from telemetry.logs import log_error

STOPPED = 130


class ErrorBoundary(TyperGroup):
    """A group whose errors become one line on stderr and an exit code, never a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that ``ctx`` names.

        Raises:
            typer.Exit: with the exit code of the error, after printing its message.
        """
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort):
            raise
        except BrokenPipeError:
            # The reader of the pipe has ended, as in ``homer dump V | head``: discard the rest.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except KeyboardInterrupt as stop:
            message, code = str(stop) or "stopped; run the same command to go on", STOPPED
        except HomerError as error:
            message, code = f"{error}{_log_error(error)}", _code(error, ctx)
        except Exception as error:
            if hasattr(error, "format_message") and hasattr(error, "exit_code"):
                # Typer prints it: a command's whole help, or a line that may quote arguments.
                told: Any = error
                command = getattr(told, "ctx", None)
                if command is None or told.message != command.get_help():
                    told.message = printable(told.message)
                raise
            where = _log_error(error) or (
                "" if _debug(ctx) else " (homer --debug COMMAND shows where)"
            )
            first = next((line for line in str(error).splitlines() if line.strip()), "no message")
            message = f"{type(error).__name__}: {first}{where}"
            code = _code(error, ctx)
        note(f"homer: {message}")
        raise typer.Exit(code)


def _code(error: Exception, ctx: Any) -> int:
    """Return the exit code; with ``--debug``, print the traceback first."""
    if _debug(ctx):
        for line in "".join(traceback.format_exception(error)).splitlines():
            note(line)
    return error.exit_code if isinstance(error, HomerError) else HomerError.exit_code


def _log_error(error: Exception) -> str:
    """Log the error and return where; wrong input is not logged, since its message says all."""
    log = None if isinstance(error, InputError) else log_error(error)
    return f" (log: {log})" if log is not None else ""


def _debug(ctx: Any) -> bool:
    return bool(ctx.obj and ctx.obj.get("debug"))


# Groups of commands whose modules are imported only when one of them is needed.


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


# Options and arguments that several commands share.


Profile = Annotated[
    str | None,
    typer.Option(
        "--profile",
        "-p",
        metavar="NAME|FILE",
        help="Which models and settings to use: local, small, gemini, openai, ollama, one of "
        "homer.toml, or a TOML file. Default: $HOMER_PROFILE, then homer.toml, then local.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Strategy = Annotated[
    str | None,
    typer.Option(
        "--strategy",
        "-s",
        metavar="NAME",
        help="How memory is searched: see 'homer strategies'. auto: as was learned for such "
        "questions. Default: by the settings, homer.",
    ),
]


SEVERAL_WORDS = {"allow_extra_args": True}
"""Context settings of a ``WordsCommand``, which itself rejects extra arguments."""


class WordsCommand(TyperCommand):
    """A command with one argument in words; explains how a second argument was meant."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line; extra arguments are a usage error with a suggestion."""
        extra: list[str] = super().parse_args(ctx, args)
        if len(extra) == 1:
            ctx.fail(
                f"Got unexpected extra argument ({extra[0]}): did you mean --video {extra[0]}?"
            )
        if extra:
            words = " ".join(extra)
            ctx.fail(f"Got unexpected extra arguments ({words}): put all the words between quotes")
        return extra


# ``homer eval``.


EVALUATIONS = {
    "local": (
        "door",
        "Measure answers to questions about clips: cited moments and chosen options.",
    ),
    "egolife": ("door", "Measure answers on EgoLife, a week of captions, beside baselines."),
    "captions": (
        "door",
        "Compare what strategies built of a video with a reference of captions at its scales.",
    ),
    "data": ("door", "List the data sets and where to get them, or check a copy of one."),
    "all": (
        "door",
        "Measure several data sets without learning, and print one table beside baselines.",
    ),
    "first": (
        "door",
        "Measure answers to everyday questions: right, rightly declined, or wrong.",
    ),
    "run": ("door", "Ask the questions of a data set, judge the answers, and learn from them."),
    "runs": ("door", "List the runs, the latest first."),
    "report": (
        "door",
        "Show a run: right answers by type, ablation, learning, cost, causes of errors.",
    ),
    "compare": ("door", "Compare two runs on the questions that both asked."),
    "calibrate": (
        "door",
        "Calibrate confidence on half of the judged answers of runs of one profile.",
    ),
}
"""Each evaluation's module, and the first sentence of its help."""


class Evaluations(LazyGroup):
    """The commands of ``homer eval``."""

    entries: ClassVar[Mapping[str, tuple[str, str]]] = EVALUATIONS
    path: ClassVar[str] = "eval "


def register(app: typer.Typer) -> None:
    """Add the group ``homer eval``."""
    group = typer.Typer(cls=Evaluations, no_args_is_help=True)
    group.callback(help="Measure answers to questions whose right answers are known.")(lambda: None)
    app.add_typer(group, name="eval")
