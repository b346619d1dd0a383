"""The records of evaluations, and the lock of each that a process works on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from domain.errors import InputError, NotFound
from domain.evaluation import EvaluationRun, QuestionPart
from evals.report import main_arm, report, row_of
from evals.tables import AnsweredQuestion, RunReport
from store.file_locks import is_locked, try_file_lock
from store.queries import evaluations as stored

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from store.database import Store
    from store.home import Home

BROKEN_OFF = "broken off"


def find_run(store: Store, name: str) -> EvaluationRun:
    """Return one run.

    Raises:
        NotFound: there is no such run.
    """
    with store.begin() as session:
        return as_it_is(store, stored_run(session, name))


def run_report(store: Store, name: str) -> RunReport:
    """Return the report of a run, which may still be in progress, with its questions.

    Raises:
        NotFound: there is no such run.
    """
    with store.begin(snapshot=True) as session:
        run, rows = stored_run(session, name), _rows(session, name)
        skill_states, cost = stored.learned_batches(session, name), stored.run_cost(session, name)
    return report(as_it_is(store, run), rows, skill_states, cost)


def tested_rows(session: Session, name: str) -> list[AnsweredQuestion]:
    """Return the questions that a run was tested on, in its main arm, answered or not.

    Raises:
        NotFound: there is no such run.
    """
    main = main_arm(stored_run(session, name).settings)
    return [r for r in _rows(session, name) if (r.arm, r.part) == (main, QuestionPart.TEST)]


def _rows(session: Session, name: str) -> list[AnsweredQuestion]:
    results = stored.run_results(session, name)
    names = sorted({skill for result in results for skill in result.took.skills})
    learned = stored.learned_videos(session, names)
    return [row_of(result, learned) for result in results]


def stored_run(session: Session, name: str) -> EvaluationRun:
    """Return a run as it is stored.

    Raises:
        NotFound: there is no such run.
    """
    matching = stored.list_runs(session, name)
    if not matching:
        raise NotFound(f"there is no run {name!r}: 'homer eval runs' lists them")
    return matching[0]


def as_it_is(store: Store, run: EvaluationRun) -> EvaluationRun:
    """Return a run, as broken off where it was left running and no process works on it."""
    if run.state != stored.RUNNING or is_locked(_lock_of(store.home, run.name)):
        return run
    return run.model_copy(update={"state": BROKEN_OFF})


def _lock_of(home: Home, name: str) -> Path:
    return home.run / f"eval-{name}.lock"


@contextmanager
def exclusive_run(home: Home, name: str) -> Iterator[None]:
    """Hold the exclusive lock of a run of this data directory.

    Raises:
        InputError: another process holds it.
    """
    with try_file_lock(_lock_of(home.make(), name)) as locked:
        if not locked:
            raise InputError(f"the run {name!r} is being worked on: wait until it is done")
        yield
