"""Options that several commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from domain.time import TimeSpan

Profile = Annotated[
    str | None,
    typer.Option(
        "--profile",
        "-p",
        metavar="NAME|FILE",
        help="Set of models: local, gemini, openai, ollama, or a TOML file. "
        "Default: $HOMER_PROFILE, homer.toml, else local.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for other programs.")]
Videos = Annotated[
    list[str] | None,
    typer.Option(
        "--video", "-v", metavar="VIDEO", help="Id, unambiguous beginning, or title; repeatable."
    ),
]
OneVideo = Annotated[
    str, typer.Argument(metavar="VIDEO", help="Id, unambiguous beginning, or title.")
]
AsOf = Annotated[
    str | None,
    typer.Option(
        "--as-of", metavar="MM:SS", help="Use only what was seen by then (H:MM:SS, 'd2 H:MM:SS')."
    ),
]


def parse_as_of(text: str | None) -> int | None:
    """Milliseconds of video time, or None.

    Raises:
        InputError: the text is not a time.
    """
    from domain.errors import InputError
    from domain.time import parse_clock

    try:
        return None if text is None else parse_clock(text)
    except ValueError as error:
        raise InputError(f"--as-of: {error}") from error


LAST_MS = 10**15
"""Later than any video ends."""


def parse_span(begin: str | None, end: str | None) -> TimeSpan:
    """The span of video time between two clocks; without them from the start, to the end.

    Raises:
        InputError: one is not a time, or the span ends before it begins.
    """
    from domain.errors import InputError
    from domain.time import TimeSpan, parse_clock

    try:
        start = 0 if begin is None else parse_clock(begin)
        stop = LAST_MS if end is None else parse_clock(end)
    except ValueError as error:
        raise InputError(f"--from, --to: {error}") from error
    if stop <= start:
        raise InputError(f"--to {end} is not after --from {begin or '0:00'}")
    return TimeSpan.of(start, stop)
