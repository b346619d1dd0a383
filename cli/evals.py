"""``homer eval``: how well questions with known answers are answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import typer

from cli.lazy_group import LazyGroup

COMMANDS = {
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

    entries: ClassVar[Mapping[str, tuple[str, str]]] = COMMANDS
    path: ClassVar[str] = "eval "


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(cls=Evaluations, no_args_is_help=True)
    group.callback(help="Measure answers to questions whose right answers are known.")(lambda: None)
    app.add_typer(group, name="eval")
