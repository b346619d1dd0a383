"""An evaluation from start to end, as Prefect's flow or as plain calls."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from evals.plan import Plan
from evals.running import EvalListener, EvaluationSteps, exclusive_run
from flows.evaluation_steps import run_evaluation
from flows.reporting import connect_to_prefect
from flows.workspace import Workspace

MOST_WORKERS = 4


@dataclass(frozen=True)
class EvalOutcome:
    """The outcome of a run. ``left_out``: videos that could not be asked about, and why."""

    name: str
    over: bool
    left_out: dict[str, str]


def run(
    workspace: Workspace,
    name: str,
    plan: Plan,
    listener: EvalListener,
    *,
    direct: bool = False,
    workers: int | None = None,
    max_cost: float | None = None,
) -> EvalOutcome:
    """Ingest what is missing, ask, judge and learn; resumes an interrupted run.

    Args:
        name: the run's name.
        plan: the questions and settings.
        direct: plain calls instead of a Prefect flow.
        workers: questions asked at a time; by default one per processor, at most 4, and one if a
            language model runs in this process.
        max_cost: US dollars after which nothing more is started.

    Raises:
        InputError: the run was started with other settings, or is in progress.
        SetupError: the database or a model is missing.
    """
    count = workers or default_workers(workspace)
    with (
        exclusive_run(workspace.home, name),
        EvaluationSteps(workspace, name, plan, listener, max_cost) as evaluation,
    ):
        evaluation.begin()
        finished = False
        try:
            _conduct(evaluation, count, listener.said, direct=direct)
            finished = True
        finally:
            evaluation.end(interrupted=not finished)
        return EvalOutcome(name, evaluation.over(), evaluation.left_out)


def default_workers(workspace: Workspace) -> int:
    """Return the default number of workers; a model in this process answers one by one."""
    return 1 if workspace.profile.in_process else min(MOST_WORKERS, os.cpu_count() or 1)


def _conduct(
    evaluation: EvaluationSteps, workers: int, on_message: Callable[[str], None], *, direct: bool
) -> None:
    api = (
        None
        if direct or not evaluation.has_work()
        else connect_to_prefect(evaluation.workspace.home, on_message)
    )
    run_evaluation(evaluation, workers, api)
