"""What is on record of evaluations, for commands and pages: they format, this decides."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from domain.confidence import Calibration
from domain.errors import InputError, NotFound
from domain.evaluation import QuestionPart
from evals.calibration import fit, save
from evals.paired import Comparison, changes, effect
from evals.report import report, row_of
from evals.running import is_worked_on
from evals.tables import AnsweredQuestion, RunLine, RunReport, main_arm
from models.profile import calibration_file, load_profile
from store.queries import evaluations as stored
from store.queries.evaluations import StoredRun

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from store.database import Store

BROKEN_OFF = "broken off"


def list_runs(store: Store) -> list[RunLine]:
    """All runs, the latest first."""
    with store.begin() as session:
        found = stored.runs(session)
    return [_line(store, one) for one in found]


def page_of_runs(store: Store, offset: int, limit: int) -> tuple[list[RunLine], int]:
    """A page of the runs, the latest first, and how many there are."""
    with store.begin(snapshot=True) as session:
        found, total = stored.runs(session, None, offset, limit), stored.count_runs(session)
    return [_line(store, one) for one in found], total


def find_run(store: Store, name: str) -> RunLine:
    """How one run stands.

    Raises:
        NotFound: there is no such run.
    """
    with store.begin() as session:
        return _line(store, _run(session, name))


def run_rows(store: Store, name: str) -> list[AnsweredQuestion]:
    """Every question of a run in every arm, by arm and place, answered or not.

    Raises:
        NotFound: there is no such run.
    """
    with store.begin(snapshot=True) as session:
        _run(session, name)
        return _rows(session, name)


def run_report(store: Store, name: str) -> RunReport:
    """The report of a run, also while it runs.

    Raises:
        NotFound: there is no such run.
    """
    with store.begin(snapshot=True) as session:
        found, rows = _run(session, name), _rows(session, name)
        shelves, cost = stored.batches(session, name), stored.cost_of(session, name)
    return report(found, _line(store, found), rows, shelves, cost)


def compare_runs(store: Store, first: str, second: str) -> Comparison:
    """Two runs over the questions that both were tested on, each in its main arm.

    Raises:
        NotFound: there is no such run, or no question was judged in both.
    """
    with store.begin(snapshot=True) as session:
        before, after = (_tested(session, name) for name in (first, second))
    found = effect(first, second, before, after)
    if found is None:
        raise NotFound(f"no question was judged in both {first!r} and {second!r}")
    told = sum(row.right is not None for row in (*before, *after))
    return Comparison(
        effect=found,
        changes=tuple(changes(before, after)),
        alone=told - 2 * found.questions,
    )


def fit_calibration(store: Store, names: Sequence[str]) -> tuple[Path, Calibration]:
    """Fit a profile's calibration on the answers of some runs, and keep it in the home.

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
    found = stored.results(session, name)
    names = sorted({skill for one in found for skill in one.skills})
    learned = stored.learned_videos(session, names)
    return [row_of(one, learned) for one in found]


def _run(session: Session, name: str) -> StoredRun:
    found = stored.runs(session, name)
    if not found:
        raise NotFound(f"there is no run {name!r}: 'homer eval runs' lists them")
    return found[0]


def _line(store: Store, run: StoredRun) -> RunLine:
    working = run.state == stored.RUNNING and is_worked_on(store.home, run.name)
    lost = run.state == stored.RUNNING and not working
    return RunLine(
        name=run.name,
        dataset=run.settings.dataset,
        profile=run.settings.profile,
        protocol=run.settings.protocol,
        state=BROKEN_OFF if lost else run.state,
        note=run.note,
        began_at=run.began_at,
        ended_at=run.ended_at,
        questions=run.settings.questions,
        planned=run.planned,
        judged=run.judged,
    )
