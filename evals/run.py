"""An evaluation from beginning to end, as Prefect's flow or as plain calls."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from evals.plan import Plan
from evals.running import EvalListener, Evaluating, alone
from flows.evaluation_steps import PlainEvalSteps, evaluate
from flows.reporting import connect, reporting
from flows.workspace import Workspace

MOST_WORKERS = 4


@dataclass(frozen=True)
class EvalOutcome:
    """What became of a run. ``left_out``: videos that could not be asked about, and why."""

    name: str
    over: bool
    left_out: dict[str, str]


def run(
    desk: Workspace,
    name: str,
    plan: Plan,
    listener: EvalListener,
    *,
    direct: bool = False,
    workers: int | None = None,
    max_cost: float | None = None,
) -> EvalOutcome:
    """Ingest what is missing, ask, judge and learn; goes on where an earlier run was stopped.

    Args:
        desk: the library and the models.
        name: the run's name.
        plan: what is asked.
        listener: is told how it goes.
        direct: plain calls instead of a Prefect flow.
        workers: questions asked at a time; by default one a processor, at most 4, and one where a
            language model runs in this process.
        max_cost: US dollars after which nothing more is begun.

    Raises:
        InputError: the run was begun with other settings, or is being worked on.
        SetupError: the database or a model is missing.
    """
    count = workers or default_workers(desk)
    with alone(desk.home, name), Evaluating(desk, name, plan, listener, max_cost) as work:
        work.begin()
        whole = False
        try:
            _conduct(work, count, listener.said, direct=direct)
            whole = True
        finally:
            work.end(interrupted=not whole)
        return EvalOutcome(name, work.over(), work.left_out)


def default_workers(desk: Workspace) -> int:
    """A language model in this process answers one question at a time."""
    return 1 if desk.profile.in_process else min(MOST_WORKERS, os.cpu_count() or 1)


def _conduct(work: Evaluating, workers: int, said: Callable[[str], None], *, direct: bool) -> None:
    api = None if direct or not work.has_work() else connect(work.desk.home, said)
    if api is None:
        evaluate(work, PlainEvalSteps(workers))
        return
    with reporting(work.desk.home, api):
        from flows.evaluate import run as in_flow

        in_flow(work, workers)
