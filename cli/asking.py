"""Commands that are given words, and videos by an option: what stands beside the words."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

BESIDE = {"allow_extra_args": True}
"""Settings of such a command, which complains by itself of what is too much."""


class WordsFirst(TyperCommand):
    """A command with one argument in words; says what was meant by a second one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Reads the command line; a second argument is a usage error with the way it is meant."""
        rest: list[str] = super().parse_args(ctx, args)
        if len(rest) == 1:
            ctx.fail(f"Got unexpected extra argument ({rest[0]}): did you mean --video {rest[0]}?")
        if rest:
            told = " ".join(rest)
            ctx.fail(f"Got unexpected extra arguments ({told}): put all the words between quotes")
        return rest
