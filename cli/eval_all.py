"""``homer eval all``: several data sets after one another, and one table beside baselines."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from cli.console import note
from cli.eval_bars import watch_present
from cli.eval_run import EvalReporter
from cli.options import Json, Profile
from cli.progress import answer_progress, meter
from cli.render import render
from domain.evaluation_options import Protocol
from domain.words import plain_line
from evals import egolife, first, local
from evals.baseline import Closest
from evals.datasets import read, source
from evals.egolife import CAPTIONS, TITLE
from evals.first import QuestionSet, read_first_questions
from evals.local import read_media_questions, split_by_presence
from evals.plan import checked_name, plan, run_name
from evals.records import run_report
from evals.run import run
from evals.together import CLIPS, FIRST, WEEK, Measure, of_clips, of_first, of_run, of_week
from flows.workspace import Workspace, open_workspace
from store.progress import Meter, import_progress
from store.vector_index import build_index

Sets = Annotated[
    list[str],
    typer.Argument(
        metavar="SET=FOLDER...",
        help="A data set and its folder: local, first, egolife, or one of 'homer eval data'.",
    ),
]


def all_sets(sets: Sets, profile: Profile = None, json: Json = False) -> None:
    """Measure several data sets without learning, and print one table beside baselines.

    Videos that are not in memory are watched or imported first. "local", "first" and "egolife" are
    measured as by the commands of these names. Any other data set is measured by a new 'homer eval
    run' with --protocol none --baseline. The exit code is 4 if videos are left out.

    \b
    Example:
      homer eval all local=media egolife=data/egolife nextqa=data/nextqa
    """
    wanted = [_parse_set(text) for text in sets]
    with open_workspace(profile) as workspace, meter() as bar:
        measured = [_measure(workspace, bar, name, folder) for name, folder in wanted]
    render([line for lines, _ in measured for line in lines], json=json)
    raise typer.Exit(0 if all(whole for _, whole in measured) else 4)


def _parse_set(text: str) -> tuple[str, Path]:
    """Parse the name and the folder of a data set.

    Raises:
        BadParameter: it is not SET=FOLDER.
        NotFound: there is no such data set.
    """
    name, _, folder = text.partition("=")
    if not name or not folder:
        raise typer.BadParameter(f"{text!r} is not SET=FOLDER, as in nextqa=data/nextqa")
    if name not in (CLIPS, FIRST, WEEK):
        source(name)
    return name, Path(folder)


def _measure(
    workspace: Workspace, bar: Meter, name: str, folder: Path
) -> tuple[list[Measure], bool]:
    """Measure a data set; return its lines and whether all of its videos were asked about."""
    ways = {CLIPS: _clips, FIRST: _first, WEEK: _week}
    return (
        ways[name](workspace, bar, folder) if name in ways else _run(workspace, bar, name, folder)
    )


def _clips(workspace: Workspace, bar: Meter, folder: Path) -> tuple[list[Measure], bool]:
    every = read_media_questions(folder / "questions.json")
    present, absent = split_by_presence(every, folder)
    ids, failed = watch_present(workspace, present, folder, bar)
    asked = [question for question in present if question.video in ids]
    bar.start("questions", len(asked))
    report = local.evaluate(workspace, asked, ids, absent, None, answer_progress(bar))
    closest = Closest(workspace.store, workspace.toolbox.text)
    return list(of_clips(report, closest, ids)), not failed and not absent


def _first(workspace: Workspace, bar: Meter, folder: Path) -> tuple[list[Measure], bool]:
    measures, complete = list[Measure](), True
    for of in (QuestionSet.FIRST, QuestionSet.WORK):
        present, absent = split_by_presence(read_first_questions(of.path), folder)
        ids, failed = watch_present(workspace, present, folder, bar)
        bar.start("questions", sum(question.video in ids for question in present))
        progress = answer_progress(bar)
        report = first.evaluate(workspace, of, present, ids, absent, None, progress)
        measures += of_first(report)
        complete = complete and not failed and not absent
    return measures, complete


def _week(workspace: Workspace, bar: Meter, folder: Path) -> tuple[list[Measure], bool]:
    questions = egolife.questions_in(folder)
    imported = egolife.import_week(workspace, folder / CAPTIONS, import_progress(bar, TITLE))
    build_index(workspace.store, bar)
    baseline = egolife.baseline_of(workspace, imported, import_progress(bar, "baseline"))
    bar.start("questions", len(questions))
    report = egolife.evaluate(workspace, imported, questions, None, answer_progress(bar), baseline)
    return list(of_week(report)), not report.errors


def _run(workspace: Workspace, bar: Meter, name: str, folder: Path) -> tuple[list[Measure], bool]:
    planned = plan(read(name, folder), workspace.profile, Protocol.NONE, baseline=True)
    called = checked_name(f"{run_name(planned)}-{datetime.now():%Y%m%d-%H%M%S}")
    ran = run(workspace, called, planned, EvalReporter(bar), direct=True)
    for video, why in ran.left_out.items():
        note(f"homer: {plain_line(video)}: {plain_line(why)}")
    return list(of_run(run_report(workspace.store, called))), not ran.left_out


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("all", no_args_is_help=True)(all_sets)
