"""``homer eval``: how well questions are answered, measured on questions with known answers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli import eval_all, eval_data, eval_first, eval_perception, eval_runs
from cli.console import note, say, say_json, say_table
from cli.eval_report import code_of, plain, show_bars
from cli.ingest import Reporter
from cli.options import Json, Profile
from cli.progress import meter
from cli.watching import moved, told
from views.words import plain_line

if TYPE_CHECKING:
    from evals.egolife import BaselineComparison, EgoReport
    from evals.local import JudgedAnswer, LocalReport, LocalRow
    from evals.scores import PercentInterval, Summary

Out = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write the answers there, as JSON lines.")
]

app = typer.Typer(
    help="Measure how well questions with known answers are answered.", no_args_is_help=True
)


@app.command("local", no_args_is_help=True)
def local(
    questions: Annotated[
        Path, typer.Argument(metavar="QUESTIONS", help="questions.json, the clips beside it.")
    ],
    out: Out = None,
    profile: Profile = None,
    json: Json = False,
) -> None:
    """Questions about real clips: is the right moment cited, is the right option chosen?

    Clips that are not in memory are watched first; absent files are left out. The exit code is 1
    where a bar is missed.

    \b
    Example:
      homer eval local media/questions.json --out answers.jsonl
    """
    from evals.local import evaluate, split_by_presence, watch_all
    from evals.media_questions import read_media_questions
    from flows.workspace import open_workspace

    every, folder = read_media_questions(questions), questions.parent
    present, absent = split_by_presence(every, folder)
    with open_workspace(profile) as desk, meter() as bar:
        ids, failed = watch_all(desk, present, folder, Reporter(bar))
        for outcome in failed:
            note(f"homer: {outcome.path.name}: {outcome.error or 'clips are left to try again'}")
        asked = [one for one in present if one.video in ids]
        bar.start("questions", len(asked))
        report = evaluate(desk, asked, ids, absent, out, told(bar))
    say_json(plain(report, report.bars)) if json else _show_local(report)
    raise typer.Exit(code_of(report.bars) if not failed else 4)


@app.command("egolife", no_args_is_help=True)
def egolife(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Has captions.jsonl.gz and questions.json.")
    ],
    out: Out = None,
    profile: Profile = None,
    json: Json = False,
) -> None:
    """Questions about a week of captions, each as of its time, beside a plain baseline.

    The captions are imported first, unless they are in memory. The exit code is 1 where a bar is
    missed.

    \b
    Example:
      homer eval egolife data/egolife --out answers.jsonl
    """
    from evals.egolife import evaluate, import_week, questions_in
    from evals.egolife_questions import CAPTIONS, TITLE
    from flows.workspace import open_workspace

    questions = questions_in(folder)
    with open_workspace(profile) as desk, meter() as bar:
        imported = import_week(desk, folder / CAPTIONS, moved(bar, TITLE))
        bar.start("questions", len(questions))
        report = evaluate(desk, imported, questions, out, told(bar), moved(bar, "baseline"))
    say_json(plain(report, report.bars)) if json else _show_egolife(report)
    raise typer.Exit(code_of(report.bars))


def _show_local(report: LocalReport) -> None:
    heads = ("video", "questions", "cited %", "choices", "right %", "chance %", "rounds", "seconds")
    say_table(heads, [_local_row(row) for row in (*report.videos, report.every)])
    for answer in report.answers:
        if not answer.cited or answer.right is False:
            say(_missed(answer))
    if report.absent:
        say(f"absent, not asked about: {plain_line(', '.join(report.absent))}")
    say(f"{report.every.questions} questions asked in {report.seconds:.0f} s")
    if report.conduct.tokens_in:
        each = report.conduct.tokens_in / max(1, report.conduct.rounds)
        say(f"{each:.0f} tokens read a round, over {report.conduct.rounds} rounds")
    show_bars(report.bars)


def _local_row(row: LocalRow) -> tuple[object, ...]:
    shares = ("" if share is None else f"{share:.1f}" for share in (row.accuracy, row.chance))
    return (
        row.name,
        row.questions,
        f"{row.cited:.1f}",
        row.choices,
        *shares,
        f"{row.rounds:g}",
        f"{row.seconds:.2f}",
    )


def _missed(answer: JudgedAnswer) -> str:
    """What went wrong with one question."""
    asked = answer.question
    marked = ", ".join(f"{start:g}-{end:g}" for start, end in asked.spans_s)
    cited = "nothing" if answer.top is None else f"{answer.top[0]:g}-{answer.top[1]:g}"
    parts = [] if answer.cited else [f"cites {cited} s, marked {marked} s"]
    if answer.right is False:
        parts.append(f"chose {answer.option or 'nothing'}, right is {asked.right}")
    return f"  {plain_line(asked.id)}: {'; '.join(parts)}"


def _show_egolife(report: EgoReport) -> None:
    heads = ("", "questions", "right %", "top 1 %", "top 3 %", "top 10 %", "IoU %")
    say_table(heads, _ego_rows("all", report.every, report.baseline))
    say()
    kinds = [row for kind, one in report.types.items() for row in _short_rows(kind, one)]
    say_table(("by type", *heads[1:]), kinds)
    say()
    took = report.imported.seconds
    said = "was in memory already" if took is None else f"took {took:.0f} s"
    say(f"the import {said}; {report.questions} questions were asked in {report.ask_s:.0f} s")
    show_bars(report.bars)


def _ego_rows(name: str, both: BaselineComparison, baseline: str) -> list[tuple[object, ...]]:
    ours, plain = both.homer, both.plain
    pairs = zip(_figures(ours), _figures(plain), strict=True)
    ratios = [f"{a.value / b.value:.2f}" if b.value else "" for a, b in pairs]
    return [
        (f"{name}: Homer", ours.questions, *(f"{f.value:.1f}" for f in _figures(ours))),
        ("  90 % of resamples", "", *(f"{f.low:.1f}-{f.high:.1f}" for f in _figures(ours))),
        (f"{name}: {baseline}", plain.questions, *(f"{f.value:.1f}" for f in _figures(plain))),
        ("  90 % of resamples", "", *(f"{f.low:.1f}-{f.high:.1f}" for f in _figures(plain))),
        ("  times the baseline", "", *ratios),
    ]


def _short_rows(name: str, both: BaselineComparison) -> list[tuple[object, ...]]:
    return [
        (f"{name}: {who}", one.questions, *(_with_interval(f) for f in _figures(one)))
        for who, one in (("Homer", both.homer), ("baseline", both.plain))
    ]


def _with_interval(figure: PercentInterval) -> str:
    return f"{figure.value:.1f} ({figure.low:.0f}-{figure.high:.0f})"


def _figures(one: Summary) -> list[PercentInterval]:
    return [one.accuracy, *one.found.values(), one.iou]


def register(main: typer.Typer) -> None:
    """Adds the commands of this module."""
    app.command("data")(eval_data.data)
    app.command("all", no_args_is_help=True)(eval_all.all_sets)
    app.command("first", no_args_is_help=True)(eval_first.first)
    app.command("perception")(eval_perception.perception)
    eval_runs.register(app)
    main.add_typer(app, name="eval")
