"""``homer eval runs``, ``report``, ``compare`` and ``calibrate``: what evaluations found."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.console import note, say, say_json, say_table
from cli.options import Json
from evals.export import as_csv, as_page, write
from evals.layout import ReportTable, changes_table, effect_table, headline, tables
from evals.records import compare_runs, fit_calibration, list_runs, run_report, run_rows
from evals.submission import write_submissions
from evals.tables import RunLine, RunReport
from store.database import Store, open_store
from store.home import Home
from views.words import plain_line

Run = Annotated[str, typer.Argument(metavar="RUN", help="Name of a run: see 'homer eval runs'.")]


def show_report(found: RunReport) -> None:
    """Print a report: the remarks, then the tables."""
    for remark in found.remarks:
        say(plain_line(remark))
    for table in tables(found):
        _show_table(table)
    say(f"{found.cost_usd:.2f} US dollars in all")
    say(headline(found))


def _show_table(table: ReportTable) -> None:
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
    with _store() as store:
        found = list_runs(store)
    if json:
        return say_json([line.model_dump(mode="json") for line in found])
    if not found:
        return note("there are no runs yet; 'homer eval run DATASET FOLDER' makes one")
    heads = ("run", "data set", "profile", "protocol", "state", "judged", "of", "begun")
    return say_table(heads, map(_run_row, found))


def _run_row(line: RunLine) -> tuple[object, ...]:
    when = f"{line.began_at.astimezone():%Y-%m-%d %H:%M}"
    counts = (line.judged, max(line.planned, line.questions))
    return (line.name, line.dataset, line.profile, line.protocol, line.state, *counts, when)


def report(
    name: Run,
    csv: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write all questions to a CSV file.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the report to an HTML file.")
    ] = None,
    submission: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Write the answers of each arm for the data set's leaderboard."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Show a run: right answers by type, ablation, learning, cost, causes of errors.

    A run can be shown while it is going on. The interval in brackets holds the middle 90 % of
    bootstrap resamples.

    \b
    Examples:
      homer eval report own-local-split
      homer eval report mine --html mine.html
      homer eval report egomemreason-local-none --submission answers
    """
    with _store() as store:
        found, rows = run_report(store, name), run_rows(store, name)
    if csv is not None:
        write(csv, as_csv(rows))
    if html is not None:
        write(html, as_page(found, rows))
    if submission is not None:
        for written in write_submissions(submission, name, found.settings.dataset, rows):
            asked = "" if written.wanted is None else f" of {written.wanted}"
            note(f"{written.file}: {written.answers}{asked} answers, {plain_line(written.arm)}")
    if json:
        questions = {"questions": [row.model_dump(mode="json") for row in rows]}
        return say_json(found.model_dump(mode="json") | questions)
    return show_report(found)


def compare(
    first: Annotated[str, typer.Argument(metavar="A", help="Name of a run.")],
    second: Annotated[str, typer.Argument(metavar="B", help="Name of another run.")],
    json: Json = False,
) -> None:
    """Compare two runs on the questions that both asked.

    It lists the questions whose result changed, and tests the difference with McNemar's exact
    test: p is the probability of such a difference by chance.

    \b
    Examples:
      homer eval compare own-local-none own-gemini-none
    """
    with _store() as store:
        found = compare_runs(store, first, second)
    if json:
        return say_json(found.model_dump(mode="json"))
    if found.changes:
        _show_table(changes_table(found))
    _show_table(effect_table("The same questions, answered twice", found.effect))
    return say(f"{found.alone} more were judged in one of them only") if found.alone else None


def calibrate(
    names: Annotated[list[str], typer.Argument(metavar="RUN...", help="Names of runs.")],
    json: Json = False,
) -> None:
    """Calibrate confidence on half of the judged answers of runs of one profile.

    The calibration is stored in the data directory, and used by later answers of the profile.
    'homer eval report' measures it on the other half. docs/answering.md describes the method.

    \b
    Example:
      homer eval calibrate egolifeqa-local-none nextqa-local-none
    """
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
    return note(f"stored in {plain_line(str(path))}; answers use it from now on")


def _store() -> Store:
    return open_store(Home.default())


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("runs")(list_all)
    for command in (report, compare, calibrate):
        app.command(no_args_is_help=True)(command)
