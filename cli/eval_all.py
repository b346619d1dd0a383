"""``homer eval all``: several data sets after one another, and one table beside baselines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.console import note, say_json, say_table
from cli.eval_runs import EvalReporter
from cli.options import Json, Profile
from cli.progress import ProgressMeter, meter
from cli.watching import moved, told
from views.words import plain_line

if TYPE_CHECKING:
    from evals.scores import PercentInterval
    from evals.together import Measure
    from flows.workspace import Workspace

Sets = Annotated[
    list[str],
    typer.Argument(
        metavar="SET=FOLDER...",
        help="local=FOLDER or first=FOLDER (clips), egolife=FOLDER, or any data set's name.",
    ),
]


def all_sets(sets: Sets, profile: Profile = None, json: Json = False) -> None:
    """Measure several data sets without learning, and print one table beside baselines.

    What is not in memory is watched or imported first. "local", "first" and "egolife" are
    measured as by 'homer eval local', 'homer eval first' and 'homer eval egolife', every other
    data set as by 'homer eval run' with --protocol none and --baseline, as a new run each time.
    The exit code is 4 where videos are left out.

    \b
    Example:
      homer eval all local=media egolife=data/egolife nextqa=data/nextqa
    """
    from flows.workspace import open_workspace

    wanted = [_parted(one) for one in sets]
    with open_workspace(profile) as desk, meter() as bar:
        found = [_measured(desk, bar, *one) for one in wanted]
    rows = [line for lines, _ in found for line in lines]
    say_json([_plain(one) for one in rows]) if json else show(rows)
    raise typer.Exit(0 if all(whole for _, whole in found) else 4)


def _parted(one: str) -> tuple[str, Path]:
    """A data set's name and its folder.

    Raises:
        BadParameter: it is not SET=FOLDER.
        NotFound: there is no such data set.
    """
    from evals.datasets import source
    from evals.together import CLIPS, FIRST, WEEK

    name, _, folder = one.partition("=")
    if not name or not folder:
        raise typer.BadParameter(f"{one!r} is not SET=FOLDER, as in nextqa=data/nextqa")
    if name not in (CLIPS, FIRST, WEEK):
        source(name)
    return name, Path(folder)


def _measured(
    desk: Workspace, bar: ProgressMeter, name: str, folder: Path
) -> tuple[list[Measure], bool]:
    """The lines of a data set, and whether all of its videos were asked about."""
    from evals.together import CLIPS, FIRST, WEEK

    ways = {CLIPS: _clips, FIRST: _first, WEEK: _week}
    return ways[name](desk, bar, folder) if name in ways else _run(desk, bar, name, folder)


def _clips(desk: Workspace, bar: ProgressMeter, folder: Path) -> tuple[list[Measure], bool]:
    from cli.ingest import Reporter
    from evals.baseline import Closest
    from evals.local import evaluate, split_by_presence, watch_all
    from evals.media_questions import read_media_questions
    from evals.together import of_clips

    every = read_media_questions(folder / "questions.json")
    present, absent = split_by_presence(every, folder)
    ids, failed = watch_all(desk, present, folder, Reporter(bar))
    for outcome in failed:
        note(f"homer: {outcome.path.name}: {outcome.error or 'clips are left to try again'}")
    asked = [one for one in present if one.video in ids]
    bar.start("questions", len(asked))
    report = evaluate(desk, asked, ids, absent, None, told(bar))
    closest = Closest(desk.store, desk.toolbox.text)
    return list(of_clips(report, closest, ids)), not failed and not absent


def _first(desk: Workspace, bar: ProgressMeter, folder: Path) -> tuple[list[Measure], bool]:
    from cli.ingest import Reporter
    from evals.first import evaluate
    from evals.first_questions import read_first_questions
    from evals.local import split_by_presence, watch_all
    from evals.together import of_first

    present, absent = split_by_presence(read_first_questions(), folder)
    ids, failed = watch_all(desk, present, folder, Reporter(bar))
    for outcome in failed:
        note(f"homer: {outcome.path.name}: {outcome.error or 'clips are left to try again'}")
    bar.start("questions", sum(one.video in ids for one in present))
    report = evaluate(desk, present, ids, absent, None, told(bar))
    return list(of_first(report)), not failed and not absent


def _week(desk: Workspace, bar: ProgressMeter, folder: Path) -> tuple[list[Measure], bool]:
    from evals.egolife import evaluate, import_week, questions_in
    from evals.egolife_questions import CAPTIONS, TITLE
    from evals.together import of_week

    questions = questions_in(folder)
    imported = import_week(desk, folder / CAPTIONS, moved(bar, TITLE))
    bar.start("questions", len(questions))
    report = evaluate(desk, imported, questions, None, told(bar), moved(bar, "baseline"))
    return list(of_week(report)), not report.errors


def _run(
    desk: Workspace, bar: ProgressMeter, name: str, folder: Path
) -> tuple[list[Measure], bool]:
    from domain.choices import Protocol
    from evals.datasets import read
    from evals.plan import checked_name, plan, run_name
    from evals.records import run_report
    from evals.run import run
    from evals.together import of_run

    planned = plan(read(name, folder), desk.profile, Protocol.NONE, baseline=True)
    called = checked_name(f"{run_name(planned)}-{datetime.now():%Y%m%d-%H%M%S}")
    ran = run(desk, called, planned, EvalReporter(bar), direct=True)
    for video, why in ran.left_out.items():
        note(f"homer: {plain_line(video)}: {plain_line(why)}")
    return list(of_run(run_report(desk.store, called))), not ran.left_out


def show(rows: Sequence[Measure]) -> None:
    """All measures as one table."""
    heads = ("data set", "measure", "questions", "Homer %", "baseline %", "points above")
    say_table(heads, _rows(rows))


def _rows(measured: Iterable[Measure]) -> Iterator[tuple[object, ...]]:
    for one in measured:
        above = "" if one.above is None else f"{one.above:+.1f}"
        figures = _shown(one.ours), _shown(one.plain)
        yield one.dataset, one.measure, one.questions, *figures, above


def _shown(figure: PercentInterval | None) -> str:
    return "" if figure is None else f"{figure.value:.1f} ({figure.low:.0f}-{figure.high:.0f})"


def _plain(one: Measure) -> dict[str, object]:
    from pydantic_core import to_jsonable_python

    return {**to_jsonable_python(one), "above": one.above}
