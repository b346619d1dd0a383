"""Moves a meter along with an evaluation's imports and answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cli.progress import ProgressMeter

if TYPE_CHECKING:
    from graphs.batch import BatchResult


def moved(bar: ProgressMeter, label: str) -> Callable[[int, int], None]:
    """Moves the bar to where an import is, whatever was done before."""
    at: list[int] = []

    def move(done: int, total: int) -> None:
        if not at:
            bar.start(label, total, done)
        else:
            bar.step(done - at[-1])
        at.append(done)

    return move


def told(bar: ProgressMeter) -> Callable[[BatchResult], None]:
    """Moves the bar by an answer, and says why there is none."""

    def one_more(result: BatchResult) -> None:
        if result.error is not None:
            bar.say(f"homer: question {result.id}: {result.error}")
        bar.step()

    return one_more
