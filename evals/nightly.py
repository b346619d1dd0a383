"""The flow of a scheduled evaluation: a new run each night, named after the day.

Import this module only after Prefect's environment is set
(``services.supervisor.prefect_environment``).
"""

from __future__ import annotations

from datetime import date
from pathlib import Path

from prefect import flow
from prefect.client.schemas.objects import State

from domain.evaluation import Verdict
from domain.evaluation_options import Protocol
from evals.datasets import read
from evals.plan import checked_name, plan, run_name
from evals.report_formats import headline
from evals.running import run
from flows.schedules.kinds import EvaluateOptions
from flows.schedules.runs import run_in_background
from flows.schedules.work import JobReport
from flows.watching import SilentListener
from flows.workspace import Workspace
from store.queries.evaluations import Slot


class SilentEval(SilentListener):
    """A listener for an evaluation that nobody watches."""

    def importing(self, video: str, done: int, total: int) -> None:
        """Ignore the progress."""

    def asking(self, total: int, done: int) -> None:
        """Ignore the progress."""

    def judged(self, slot: Slot, verdict: Verdict, cost_usd: float) -> None:
        """Ignore the verdict: the run's report has it."""


@flow(name="evaluate")
def evaluate(
    dataset: str,
    folder: Path,
    limit: int | None = None,
    max_cost: float | None = None,
    profile: str | None = None,
) -> State[None]:
    """Ask the questions of a data set and judge the answers; nothing is learned from them."""
    options = EvaluateOptions(
        dataset=dataset, folder=folder, limit=limit, max_cost=max_cost, profile=profile
    )
    return run_in_background(lambda workspace: ask_all(workspace, options, date.today()), profile)


def ask_all(workspace: Workspace, options: EvaluateOptions, day: date) -> JobReport:
    """Ask the questions of a data set in that day's run, resuming an interrupted one.

    Raises:
        InputError: the data set cannot be read, or has none of its videos.
        SetupError: the database or a model is missing.
    """
    dataset = read(options.dataset, options.folder)
    planned = plan(dataset, workspace.profile, Protocol.NONE, limit=options.limit)
    name = checked_name(f"{run_name(planned)}-{day:%Y%m%d}")
    outcome = run(workspace, planned, SilentEval(), name=name, max_cost=options.max_cost)
    text = headline(outcome)
    if outcome.over:
        return JobReport(f"{name}: the money is spent; {text}", ok=False)
    left_out = f"; left out: {', '.join(outcome.left_out)}" if outcome.left_out else ""
    return JobReport(f"{name}: {text}{left_out}", ok=not left_out)
