"""What every evaluation tells: its bars, and all of it as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cli.console import say_table

if TYPE_CHECKING:
    from evals.bars import Bar

MISSED = 1
"""Exit code where a bar is missed."""


def code_of(bars: Sequence[Bar]) -> int:
    """The exit code: 0 where every bar is reached."""
    from evals.bars import all_met

    return 0 if all_met(bars) else MISSED


def plain(report: Any, bars: Sequence[Bar]) -> dict[str, Any]:
    """A report as JSON: its figures, and every bar with whether it is met."""
    from pydantic_core import to_jsonable_python

    told = [{**dataclasses.asdict(bar), "met": bar.met} for bar in bars]
    return {**to_jsonable_python(report), "bars": told}


def show_bars(bars: Sequence[Bar]) -> None:
    """A line a bar."""
    rows = (
        (
            bar.name,
            f"{bar.value:.1f}",
            f"{'at most' if bar.most else 'at least'} {bar.limit:g}",
            "met" if bar.met else "MISSED",
        )
        for bar in bars
    )
    say_table(("bar", "reached", "wanted", ""), rows)
