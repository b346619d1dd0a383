"""Handling of errors at the edge of the process: each becomes one line and an exit code.

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
from typing import Any

import typer
from typer.core import TyperGroup

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
                # Typer prints it: a line that may quote arguments, or a command's whole help.
                error.message = printable(error.message, "\n")  # type: ignore[attr-defined]
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
