"""``homer eval run`` and what shows its results: runs, report, compare."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.captions import Moved
from cli.console import note, say, say_json, say_table
from cli.ingest import STOPPED, Reporter
from cli.options import Json, Profile
from cli.progress import ProgressMeter, meter
from domain.choices import AblationStage, Protocol
from views.words import plain_line

if TYPE_CHECKING:
    from domain.evaluation import Verdict
    from evals.layout import ReportTable
    from evals.plan import Plan
    from evals.run import EvalOutcome
    from evals.tables import RunLine, RunReport
    from store.database import Store
    from store.queries.evaluations import Slot

STAGES = {stage.name.lower(): stage for stage in AblationStage}
ALL = "all"

Run = Annotated[str, typer.Argument(metavar="RUN", help="The run's name; 'homer eval runs' lists.")]
DatasetName = Annotated[
    str, typer.Argument(metavar="DATASET", help="A data set's name; 'homer eval data' lists them.")
]
Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="Where the data set's files are.")]


def run(
    dataset: DatasetName,
    folder: Folder = Path(),
    profile: Profile = None,
    limit: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Only the first N questions.")
    ] = None,
    ablate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STAGE",
            help="Ask also with less of the memory: entity, events, edges, or all; repeatable.",
        ),
    ] = None,
    protocol: Annotated[
        Protocol | None,
        typer.Option(help="How it learns; the default is split, and none with --ablate."),
    ] = None,
    baseline: Annotated[
        bool,
        typer.Option("--baseline", help="Answer multiple choice the plain way too, to compare."),
    ] = False,
    concurrency: Annotated[
        int | None, typer.Option(min=1, max=64, metavar="N", help="Questions asked at a time.")
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option(min=0, metavar="USD", help="Begin nothing more after that.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(metavar="RUN", help="What to call it; by default its settings.")
    ] = None,
    direct: Annotated[
        bool, typer.Option("--direct", help="Without Prefect's server: plain calls.")
    ] = False,
    json: Json = False,
) -> None:
    """Ask the questions of a data set, judge the answers, and learn from them.

    Videos that are not in memory are watched first. The same command goes on where it was stopped,
    and asks no question twice.

    \b
    Examples:
      homer eval run own my-questions
      homer eval run video-mme-long ~/vm --limit 50

    homer eval run lvbench ~/lvbench --protocol none --ablate all --max-cost 5
    """
    from evals.datasets import read
    from evals.plan import checked_name, plan, run_name
    from evals.run import run as run_it
    from flows.workspace import open_workspace

    stages = _stages(ablate or [])
    found = read(dataset, folder)
    try:
        with open_workspace(profile) as desk:
            planned = plan(found, desk.profile, protocol, stages, limit, baseline=baseline)
            called = checked_name(name) if name else run_name(planned)
            _announce(planned, called)
            with meter() as bar:
                ran = run_it(
                    desk,
                    called,
                    planned,
                    EvalReporter(bar),
                    direct=direct,
                    workers=concurrency,
                    max_cost=max_cost,
                )
            _finish(desk.store, ran, as_json=json)
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(STOPPED) from stop
    raise typer.Exit(5 if ran.over else 4 if ran.left_out else 0)


def _stages(names: list[str]) -> list[AblationStage]:
    """The stages by their short names.

    Raises:
        BadParameter: one is none.
    """
    wanted = [one.strip().lower() for name in names for one in name.split(",")]
    if unknown := [name for name in wanted if name not in (ALL, *STAGES)]:
        raise typer.BadParameter(f"{unknown[0]!r} is none of {', '.join([*STAGES, ALL])}")
    return list(AblationStage) if ALL in wanted else [STAGES[name] for name in wanted]


def _announce(planned: Plan, name: str) -> None:
    settings = planned.settings
    judge = settings.judge or "nobody: they stay unjudged"
    open_ones = sum(not one.question.options for one in planned.questions)
    note(f"run {name}: {settings.questions} questions, protocol {settings.protocol}")
    if open_ones:
        note(f"{open_ones} open questions, judged by {plain_line(judge)}")
    if planned.absent:
        note(f"absent, not asked about: {plain_line(', '.join(planned.absent))}")


class EvalReporter(Reporter):
    """Tells the meter how an evaluation goes."""

    def __init__(self, bar: ProgressMeter) -> None:
        super().__init__(bar)
        self._moved: dict[str, Moved] = {}

    def importing(self, video: str, done: int, total: int) -> None:
        """So many clips of captions are in memory."""
        self._moved.setdefault(video, Moved(self._bar, video, 0))(done, total)

    def asking(self, total: int, done: int) -> None:
        """Questions are asked now."""
        self._bar.start("answers", total, done)

    def judged(self, slot: Slot, verdict: Verdict, cost_usd: float) -> None:
        """A question has its verdict."""
        if verdict.failed:
            self._bar.say(f"homer: question {plain_line(slot.question)}: {plain_line(verdict.why)}")
        if cost_usd:
            self._bar.aside(f"{cost_usd:.2f} dollars so far")
        self._bar.step()


def _finish(store: Store, ran: EvalOutcome, *, as_json: bool) -> None:
    from evals.records import run_report

    found = run_report(store, ran.name)
    if as_json:
        left = {"left_out": ran.left_out, "over": ran.over}
        return say_json(found.model_dump(mode="json") | left)
    show_report(found)
    return note(f"'homer eval report {ran.name}' shows it again, and writes CSV and HTML")


def show_report(found: RunReport) -> None:
    """The report as tables, the remarks first."""
    from evals.layout import headline, tables

    for remark in found.remarks:
        say(plain_line(remark))
    for table in tables(found):
        show(table)
    say(f"{found.cost_usd:.2f} US dollars in all")
    say(headline(found))


def show(table: ReportTable) -> None:
    """A table under its title."""
    say(table.title)
    say_table(table.heads, table.rows)
    say()


def list_all(json: Json = False) -> None:
    """List the runs, the latest first.

    \b
    Examples:
      homer eval runs
      homer eval runs --json
    """
    from evals.records import list_runs

    with _store() as store:
        found = list_runs(store)
    if json:
        return say_json([one.model_dump(mode="json") for one in found])
    if not found:
        return note("there are no runs yet; 'homer eval run DATASET FOLDER' makes one")
    heads = ("run", "data set", "profile", "protocol", "state", "judged", "of", "begun")
    return say_table(heads, (_run_row(one) for one in found))


def _run_row(one: RunLine) -> tuple[object, ...]:
    when = f"{one.began_at.astimezone():%Y-%m-%d %H:%M}"
    counts = (one.judged, max(one.planned, one.questions))
    return (one.name, one.dataset, one.profile, one.protocol, one.state, *counts, when)


def report(
    name: Run,
    csv: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write every question there, as CSV.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write all of it there, as one page.")
    ] = None,
    json: Json = False,
) -> None:
    """Show a run: answers by type, ablation, learning, usage, and why answers are wrong.

    Also while it runs. Figures have the middle 90 % of their bootstrap resamples in brackets.

    \b
    Examples:
      homer eval report own-local-split
      homer eval report mine --html mine.html
    """
    from evals.export import as_csv, as_page, write
    from evals.records import run_report, run_rows

    with _store() as store:
        found, rows = run_report(store, name), run_rows(store, name)
    if csv is not None:
        write(csv, as_csv(rows))
    if html is not None:
        write(html, as_page(found, rows))
    if json:
        told = {"questions": [row.model_dump(mode="json") for row in rows]}
        return say_json(found.model_dump(mode="json") | told)
    return show_report(found)


def compare(
    first: Annotated[str, typer.Argument(metavar="A", help="A run.")],
    second: Annotated[str, typer.Argument(metavar="B", help="Another run.")],
    json: Json = False,
) -> None:
    """Compare two runs on the questions that both were asked: what changed, is it more than chance?

    McNemar's exact test on the pairs; p is how likely such a difference is where there is none.

    \b
    Examples:
      homer eval compare own-local-none own-gemini-none
    """
    from evals.layout import changes_table, effect_table
    from evals.records import compare_runs

    with _store() as store:
        found = compare_runs(store, first, second)
    if json:
        return say_json(found.model_dump(mode="json"))
    if found.changes:
        show(changes_table(found))
    show(effect_table("The same questions, answered twice", found.effect))
    return say(f"{found.alone} more were judged in one of them only") if found.alone else None


def calibrate(
    names: Annotated[list[str], typer.Argument(metavar="RUN...", help="Runs of one profile.")],
    json: Json = False,
) -> None:
    """Fit how sure answers are to how many were right, on half of the questions of some runs.

    Isotonic regression of being right on the raw confidence, for questions with options and for
    open ones. The curves are kept in the data directory for the profile; answers from now on use
    them. 'homer eval report' shows on the other half how true confidence is.

    \b
    Example:
      homer eval calibrate egolifeqa-local-none nextqa-local-none
    """
    from evals.records import fit_calibration

    with _store() as store:
        path, fitted = fit_calibration(store, names)
    if json:
        return say_json(fitted.model_dump(mode="json"))
    for name, curve in (("with options", fitted.options), ("open", fitted.open)):
        points = zip(curve.raw, curve.right, strict=True)
        rows = [(f"{raw:.2f}", f"{100 * right:.1f}") for raw, right in points]
        if rows:
            say(f"Questions {name}")
            say_table(("raw confidence", "right %"), rows)
            say()
    return note(f"kept in {plain_line(str(path))}; answers use it from now on")


def _store() -> Store:
    from store.database import open_store
    from store.home import Home

    return open_store(Home.default())


def register(app: typer.Typer) -> None:
    """Adds the commands of this module to ``homer eval``."""
    app.command(no_args_is_help=True)(run)
    app.command("runs")(list_all)
    app.command(no_args_is_help=True)(report)
    app.command(no_args_is_help=True)(compare)
    app.command(no_args_is_help=True)(calibrate)
