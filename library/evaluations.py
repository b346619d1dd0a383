"""Evaluations: what runs found, what they are compared with, and the data sets that they ask."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from domain.asking import Calibration
from domain.errors import InputError, NotFound
from domain.evaluation import EvaluationRun
from domain.words import plain_line
from evals import report_formats
from evals.caption_scales import ScaleAgreement, compare_scales
from evals.dataset import DatasetSource
from evals.datasets import Census, census, read, source, sources
from evals.report import as_it_is, run_report, stored_run, tested_rows
from evals.report_formats import write_submissions
from evals.statistics import Comparison, changes, effect, fit, save
from evals.tables import RunReport
from flows.workspace import Workspace
from library.params import (
    MAX_LIMIT,
    Limit,
    Offset,
    OnCommandLine,
    Page,
    Strategies,
    VideoName,
    page,
)
from models.profile import calibration_file, load_profile
from store.database import Store
from store.home import Home
from store.progress import SILENT, Meter
from store.queries import evaluations as stored
from strategies.registry import all_strategies, find_strategy

Run = Annotated[
    str, Field(description="Name of a run: see 'homer eval runs'."), OnCommandLine(metavar="RUN")
]


def evaluation_runs(
    store: Store, offset: Offset = 0, limit: Limit = MAX_LIMIT
) -> Page[EvaluationRun]:
    """List the runs, the latest first.

    Examples:
      homer eval runs
      homer eval runs --json
    """
    with store.begin(snapshot=True) as session:
        runs, total = stored.list_runs(session, None, offset, limit), stored.count_runs(session)
    return page([as_it_is(store, run) for run in runs], total, offset)


def evaluation_report(
    store: Store,
    name: Run,
    csv: Annotated[
        Path | None,
        Field(description="Write all questions to a CSV file."),
        OnCommandLine(metavar="FILE", only=True),
    ] = None,
    html: Annotated[
        Path | None,
        Field(description="Write the report to an HTML file."),
        OnCommandLine(metavar="FILE", only=True),
    ] = None,
    submission: Annotated[
        Path | None,
        Field(description="Write the answers of each arm for the data set's leaderboard."),
        OnCommandLine(metavar="FOLDER", only=True),
    ] = None,
    progress: Meter = SILENT,
) -> RunReport:
    """Show a run: right answers by type, ablation, learning, cost, causes of errors.

    A run can be shown while it is going on. The interval in brackets holds the middle 90 % of
    bootstrap resamples.

    Examples:
      homer eval report own-local-split
      homer eval report mine --html mine.html
      homer eval report egomemreason-local-none --submission answers

    Raises:
        NotFound: there is no such run.
        InputError: a file cannot be written, or the data set has no leaderboard.
    """
    found = run_report(store, name)
    if csv is not None:
        report_formats.write(csv, report_formats.as_csv(found.questions))
    if html is not None:
        report_formats.write(html, report_formats.as_page(found))
    if submission is not None:
        for one in write_submissions(submission, found):
            asked = "" if one.wanted is None else f" of {one.wanted}"
            progress.say(f"{one.file}: {one.answers}{asked} answers, {plain_line(one.arm)}")
    return found


def compare_evaluations(
    store: Store,
    first: Annotated[str, Field(description="Name of a run."), OnCommandLine(metavar="A")],
    second: Annotated[str, Field(description="Name of another run."), OnCommandLine(metavar="B")],
) -> Comparison:
    """Compare two runs on the questions that both asked.

    It lists the questions whose result changed, in their main arms, and tests the difference with
    McNemar's exact test: p is the probability of such a difference by chance.

    Examples:
      homer eval compare own-local-none own-gemini-none

    Raises:
        NotFound: there is no such run, or no question was judged in both.
    """
    with store.begin(snapshot=True) as session:
        before, after = (tested_rows(session, name) for name in (first, second))
    comparison = effect(first, second, before, after)
    if comparison is None:
        raise NotFound(f"no question was judged in both {first!r} and {second!r}")
    judged = sum(row.right is not None for row in (*before, *after))
    return Comparison(
        effect=comparison,
        changes=tuple(changes(before, after)),
        alone=judged - 2 * comparison.questions,
    )


def calibrate(
    store: Store,
    names: Annotated[
        tuple[str, ...], Field(description="Names of runs."), OnCommandLine(metavar="RUN...")
    ],
) -> Calibration:
    """Calibrate confidence on half of the judged answers of runs of one profile.

    The calibration is stored in the data directory, and used by later answers of the profile.
    'homer eval report' measures it on the other half. docs/answering.md describes the method.

    Examples:
      homer eval calibrate egolifeqa-local-none nextqa-local-none

    Raises:
        NotFound: there is no such run.
        InputError: the runs are of several profiles, or have too few judged answers.
    """
    with store.begin(snapshot=True) as session:
        profiles = {stored_run(session, name).settings.profile for name in names}
        rows = [row for name in names for row in tested_rows(session, name)]
    # A curve is of one profile: each has models that are sure in their own way.
    if len(profiles) != 1:
        raise InputError(f"these runs are of several profiles: {', '.join(sorted(profiles))}")
    profile = load_profile(profiles.pop(), store.home.config)
    fitted = fit(rows, profile.calibration)
    save(calibration_file(store.home.config, profile.name), fitted)
    return fitted


def data_sets(
    home: Home,  # noqa: ARG001 - every act says where it acts
    name: Annotated[
        str | None,
        Field(description="Name of a data set. Default: all."),
        OnCommandLine(metavar="DATASET", argument=True),
    ] = None,
    folder: Annotated[
        Path | None,
        Field(description="Folder with a copy of it, to check."),
        OnCommandLine(metavar="FOLDER", argument=True, only=True),
    ] = None,
) -> list[DatasetSource] | Census:
    """List the data sets and where to get them, or check a copy of one.

    With a folder, its videos and questions are counted, and compared with the published numbers.
    The exit code is 1 if they differ.

    Examples:
      homer eval data
      homer eval data m3-robot data/m3

    Raises:
        NotFound: there is no data set of that name.
        InputError: the folder or a file of it is missing or malformed.
    """
    if name is None or folder is None:
        return list(sources()) if name is None else [source(name)]
    return census(read(name, folder), source(name).published)


def compare_captions(
    workspace: Workspace, video: VideoName, strategy: Strategies = ()
) -> list[ScaleAgreement]:
    """Compare what strategies built of a video with a reference of captions at its scales.

    The reference is imported with 'homer import VIDEO --captions FILE --scale'. Without --strategy
    it is compared with all strategies that build a memory.

    Examples:
      homer eval captions egolife

    Raises:
        NotFound: there is no such video or strategy.
        InputError: there is no reference, or a strategy that was named, or each, built nothing.
    """
    named = [find_strategy(name) for name in strategy]
    found, skipped = list[ScaleAgreement](), list[InputError]()
    for one in named or [one for one in all_strategies() if one.builder is not None]:
        try:
            found += compare_scales(workspace.store, video, one, workspace.toolbox.sentences)
        except InputError as error:
            skipped.append(error)
    # A strategy that was not named may have built nothing of the video.
    if skipped and (named or not found):
        raise skipped[0]
    return found
