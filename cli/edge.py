"""The process's edge: every error becomes one line and an exit code that means something.

======  ===========================================================
code    meaning
======  ===========================================================
0       done
1       a fault in Homer itself
2       the input or the command line cannot be used
3       something is missing on this machine (``homer doctor``)
4       a model failed, or clips are left to try again
5       time, tokens or rounds ran out
6       a replay went another way than its record
130     stopped with Ctrl-C; nothing is lost
======  ===========================================================
"""

from __future__ import annotations

import os
import sys
import traceback
from typing import Any

import typer
from typer.core import TyperGroup

from cli.console import note
from domain.errors import HomerError, InputError
from telemetry.logs import log_error
from views.words import printable

STOPPED = 130


class ErrorBoundary(TyperGroup):
    """Runs a command; nothing that goes wrong in it leaves as a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Runs the command that ``ctx`` names.

        Raises:
            typer.Exit: with the code of the error, after saying it in one line.
        """
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort):
            raise
        except BrokenPipeError:
            raise typer.Exit(_close_pipe()) from None
        except KeyboardInterrupt as stop:
            told, code = str(stop) or "stopped; run the same command to go on", STOPPED
        except HomerError as error:
            told, code = f"{error}{_noted(error)}", _code(error, ctx)
        except Exception as error:
            if is_usage(error):
                _calm(error)
                raise
            where = _noted(error) or _hint(ctx)
            told = f"{type(error).__name__}: {_first_line(error)}{where}"
            code = _code(error, ctx)
        note(f"homer: {told}")
        raise typer.Exit(code)


def is_usage(error: Exception) -> bool:
    """Whether the command line itself was wrong: Typer then shows the usage, exit code 2."""
    return hasattr(error, "format_message") and hasattr(error, "exit_code")


def _calm(error: Any) -> None:
    """Typer prints what it was given, such as the name of a file that is none of ours."""
    error.message = printable(error.message)


def _code(error: Exception, ctx: Any) -> int:
    """The exit code; with ``--debug`` the way to the error is shown first."""
    if _debug(ctx):
        for line in "".join(traceback.format_exception(error)).splitlines():
            note(line)
    return error.exit_code if isinstance(error, HomerError) else HomerError.exit_code


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), "no message")


def _noted(error: Exception) -> str:
    """Writes the error down, and says where; what was only typed wrong is told in full already."""
    log = None if isinstance(error, InputError) else log_error(error)
    return f" (log: {log})" if log is not None else ""


def _debug(ctx: Any) -> bool:
    return bool(ctx.obj and ctx.obj.get("debug"))


def _hint(ctx: Any) -> str:
    return "" if _debug(ctx) else " (homer --debug COMMAND shows where)"


def _close_pipe() -> int:
    """The reader has gone, as with ``homer dump V | head``: the rest goes nowhere, quietly."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
