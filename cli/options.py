"""Options and arguments that several commands share."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperCommand

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
