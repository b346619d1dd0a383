"""The records of evaluations: read models for commands and pages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from domain.asking import Calibration
from domain.errors import InputError, NotFound
from domain.evaluation import QuestionPart
from evals.calibration import fit, save
from evals.paired import Comparison, changes, effect
from evals.report import report, row_of
from evals.running import is_in_progress
from evals.tables import AnsweredQuestion, RunLine, RunReport, main_arm
from models.profile import calibration_file, load_profile
from store.queries import evaluations as stored
from store.queries.evaluations import StoredRun

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from store.database import Store

BROKEN_OFF = "broken off"


def list_runs(store: Store) -> list[RunLine]:
    """Return all runs, latest first."""
    with store.begin() as session:
        runs = stored.list_runs(session)
    return [_line(store, run) for run in runs]


def page_of_runs(store: Store, offset: int, limit: int) -> tuple[list[RunLine], int]:
    """Return a page of the runs, latest first, and their total."""
    with store.begin(snapshot=True) as session:
        runs, total = stored.list_runs(session, None, offset, limit), stored.count_runs(session)
    return [_line(store, run) for run in runs], total


def find_run(store: Store, name: str) -> RunLine:
    """Return the line of one run.

    Raises:
        NotFound: there is no such run.
    """
    with store.begin() as session:
        return _line(store, _run(session, name))


def run_rows(store: Store, name: str) -> list[AnsweredQuestion]:
    """Return every question of a run in every arm, by arm and place, answered or not.

    Raises:
        NotFound: there is no such run.
    """
    with store.begin(snapshot=True) as session:
        _run(session, name)
        return _rows(session, name)


def run_report(store: Store, name: str) -> RunReport:
    """Return the report of a run, which may still be in progress.

    Raises:
        NotFound: there is no such run.
    """
    with store.begin(snapshot=True) as session:
        run, rows = _run(session, name), _rows(session, name)
        skill_states, cost = stored.learned_batches(session, name), stored.run_cost(session, name)
    return report(run, _line(store, run), rows, skill_states, cost)


def compare_runs(store: Store, first: str, second: str) -> Comparison:
    """Compare two runs on the questions that both were tested on, in their main arms.

    Raises:
        NotFound: there is no such run, or no question was judged in both.
    """
    with store.begin(snapshot=True) as session:
        before, after = (_tested(session, name) for name in (first, second))
    comparison = effect(first, second, before, after)
    if comparison is None:
        raise NotFound(f"no question was judged in both {first!r} and {second!r}")
    judged_count = sum(row.right is not None for row in (*before, *after))
    return Comparison(
        effect=comparison,
        changes=tuple(changes(before, after)),
        alone=judged_count - 2 * comparison.questions,
    )


def fit_calibration(store: Store, names: Sequence[str]) -> tuple[Path, Calibration]:
    """Fit a profile's calibration on the answers of some runs, and save it.

    Raises:
        NotFound: there is no such run.
        InputError: the runs are of several profiles, or have too few judged answers.
    """
    with store.begin(snapshot=True) as session:
        profiles = {_run(session, name).settings.profile for name in names}
        rows = [row for name in names for row in _tested(session, name)]
    if len(profiles) != 1:
        raise InputError(f"these runs are of several profiles: {', '.join(sorted(profiles))}")
    profile = load_profile(profiles.pop(), store.home.config)
    fitted = fit(rows, profile.calibration)
    path = calibration_file(store.home.config, profile.name)
    save(path, fitted)
    return path, fitted


def _tested(session: Session, name: str) -> list[AnsweredQuestion]:
    main = main_arm(_run(session, name).settings)
    return [r for r in _rows(session, name) if (r.arm, r.part) == (main, QuestionPart.TEST)]


def _rows(session: Session, name: str) -> list[AnsweredQuestion]:
    results = stored.run_results(session, name)
    names = sorted({skill for result in results for skill in result.skills})
    learned = stored.learned_videos(session, names)
    return [row_of(result, learned) for result in results]


def _run(session: Session, name: str) -> StoredRun:
    matching = stored.list_runs(session, name)
    if not matching:
        raise NotFound(f"there is no run {name!r}: 'homer eval runs' lists them")
    return matching[0]


def _line(store: Store, run: StoredRun) -> RunLine:
    working = run.state == stored.RUNNING and is_in_progress(store.home, run.name)
    interrupted = run.state == stored.RUNNING and not working
    return RunLine(
        name=run.name,
        dataset=run.settings.dataset,
        profile=run.settings.profile,
        protocol=run.settings.protocol,
        state=BROKEN_OFF if interrupted else run.state,
        note=run.note,
        began_at=run.began_at,
        ended_at=run.ended_at,
        questions=run.settings.questions,
        planned=run.planned,
        judged=run.judged,
    )
