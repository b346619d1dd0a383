"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

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
