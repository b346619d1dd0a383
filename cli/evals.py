"""``homer eval``: how well questions with known answers are answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import typer

from cli.lazy_group import LazyGroup

COMMANDS = {
    "local": (
        "eval_bars",
        "Questions about real clips: is the right moment cited, is the right option chosen?",
    ),
    "egolife": (
        "eval_bars",
        "Questions about a week of captions, each as of its time, beside a plain baseline.",
    ),
    "data": (
        "eval_data",
        "Data sets with questions: where to get them, and whether a copy is whole.",
    ),
    "all": (
        "eval_all",
        "Measure several data sets without learning, and print one table beside baselines.",
    ),
    "first": (
        "eval_bars",
        "Ask what people ask first: who is in it, who speaks when, how it begins and ends.",
    ),
    "perception": (
        "eval_perception",
        "Faces, voices, words and cuts, beside what people marked in the clips of FOLDER.",
    ),
    "run": ("eval_run", "Ask the questions of a data set, judge the answers, and learn from them."),
    "runs": ("eval_reports", "List the runs, the latest first."),
    "report": (
        "eval_reports",
        "Show a run: answers by type, ablation, learning, usage, and why answers are wrong.",
    ),
    "compare": (
        "eval_reports",
        "Compare two runs on the questions that both were asked: what changed, is it "
        "more than chance?",
    ),
    "calibrate": (
        "eval_reports",
        "Fit how sure answers are to how many were right, on half of the questions of some runs.",
    ),
}
"""Each evaluation's module, and the first sentence of its help."""


class Evaluations(LazyGroup):
    """The commands of ``homer eval``."""

    entries: ClassVar[Mapping[str, tuple[str, str]]] = COMMANDS


def _group() -> None:
    """Measure how well questions with known answers are answered."""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(cls=Evaluations, no_args_is_help=True)
    group.callback(help="Measure how well questions with known answers are answered.")(_group)
    app.add_typer(group, name="eval")
