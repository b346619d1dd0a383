"""``homer eval first``: questions as people ask first, over real clips."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.console import note, say, say_json, say_table
from cli.eval_report import code_of, plain, show_bars
from cli.ingest import Reporter
from cli.options import Json, Profile
from cli.progress import meter
from cli.watching import told
from views.words import plain_line, shortened

if TYPE_CHECKING:
    from evals.first import FirstAnswer, FirstReport, FirstRow

SHOWN = 100
"""Characters of a wrong answer that are shown."""


def first(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where the clips lie.")],
    questions: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Other questions of the same form than Homer's own."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the answers there, as JSON lines.")
    ] = None,
    profile: Profile = None,
    json: Json = False,
) -> None:
    """Ask what people ask first: who is in it, who speaks when, how it begins and ends.

    Also what memory cannot tell without a vision model, which must be declined. Clips that are not
    in memory are watched first; absent files are left out. The exit code is 1 where a bar is
    missed.

    \b
    Example:
      homer eval first media --out answers.jsonl
    """
    from evals.first import evaluate
    from evals.first_questions import SET, read_first_questions
    from evals.local import split_by_presence, watch_all
    from flows.workspace import open_workspace

    present, absent = split_by_presence(read_first_questions(questions or SET), folder)
    with open_workspace(profile) as desk, meter() as bar:
        ids, failed = watch_all(desk, present, folder, Reporter(bar))
        for outcome in failed:
            note(f"homer: {outcome.path.name}: {outcome.error or 'clips are left to try again'}")
        bar.start("questions", sum(one.video in ids for one in present))
        report = evaluate(desk, present, ids, absent, out, told(bar))
    say_json(plain(report, report.bars)) if json else _show(report)
    raise typer.Exit(code_of(report.bars) if not failed else 4)


def _show(report: FirstReport) -> None:
    heads = ("kind", "questions", "right", "rightly declined", "wrong", "wrong and sure")
    say_table(heads, [_row(one) for one in (*report.kinds, report.every)])
    for answer in report.answers:
        if not answer.right:
            say(_missed(answer))
    if report.absent:
        say(f"absent, not asked about: {plain_line(', '.join(report.absent))}")
    say(f"{report.every.questions} questions asked in {report.seconds:.0f} s")
    show_bars(report.bars)


def _row(one: FirstRow) -> tuple[object, ...]:
    return (one.name, one.questions, one.right, one.declined, one.wrong, one.sure)


def _missed(answer: FirstAnswer) -> str:
    """What was answered wrongly, and how sure that was."""
    cited = "nothing" if answer.top is None else f"{answer.top[0]:g}-{answer.top[1]:g} s"
    what = "declined" if answer.declined else shortened(plain_line(answer.text), SHOWN)
    return f"  {plain_line(answer.question.id)} ({answer.confidence:.2f}, cites {cited}): {what}"
