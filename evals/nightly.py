"""The flow of a scheduled evaluation: a run of its own each night, named after the day.

Import this module only after Prefect's environment is set (``services.prefect.environment``).
"""

from __future__ import annotations

from datetime import date
from pathlib import Path

from prefect import flow
from prefect.client.schemas.objects import State

from domain.choices import Protocol
from domain.evaluation import Verdict
from evals.datasets import read
from evals.layout import headline
from evals.plan import checked_name, plan, run_name
from evals.records import run_report
from evals.run import run
from flows.ingest import Silent
from flows.schedules.kinds import EvaluateOptions
from flows.schedules.runs import in_background
from flows.schedules.work import JobReport
from flows.workspace import Workspace
from store.queries.evaluations import Slot


class SilentEval(Silent):
    """Nobody is watching the evaluation."""

    def importing(self, video: str, done: int, total: int) -> None:
        """Says nothing."""

    def asking(self, total: int, done: int) -> None:
        """Says nothing."""

    def judged(self, slot: Slot, verdict: Verdict, cost_usd: float) -> None:
        """Says nothing: the run's report has it."""


@flow(name="evaluate")
def evaluate(
    dataset: str,
    folder: Path,
    limit: int | None = None,
    max_cost: float | None = None,
    profile: str | None = None,
) -> State[None]:
    """Ask the questions of a data set and judge the answers; nothing is learned from them."""
    told = EvaluateOptions(
        dataset=dataset, folder=folder, limit=limit, max_cost=max_cost, profile=profile
    )
    return in_background(lambda desk: ask_all(desk, told, date.today()), profile)


def ask_all(desk: Workspace, told: EvaluateOptions, day: date) -> JobReport:
    """Ask the questions of a data set in a run of that day; one that was broken off goes on.

    Raises:
        InputError: the data set cannot be read, or none of its videos is there.
        SetupError: the database or a model is missing.
    """
    found = read(told.dataset, told.folder)
    planned = plan(found, desk.profile, Protocol.NONE, limit=told.limit)
    name = checked_name(f"{run_name(planned)}-{day:%Y%m%d}")
    ran = run(desk, name, planned, SilentEval(), max_cost=told.max_cost)
    text = headline(run_report(desk.store, name))
    if ran.over:
        return JobReport(f"{name}: the money is spent; {text}", ok=False)
    left = f"; left out: {', '.join(ran.left_out)}" if ran.left_out else ""
    return JobReport(f"{name}: {text}{left}", ok=not left)
