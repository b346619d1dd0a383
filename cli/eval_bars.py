"""``homer eval local``, ``egolife`` and ``first``: evaluations with bars to reach."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic_core import to_jsonable_python

from cli.console import note, say, say_json, say_table
from cli.options import Json, MoreStrategies, Profile
from cli.progress import answer_progress, meter
from cli.reports import with_interval
from domain.words import counted, plain_line, shortened
from evals import egolife as egolife_evaluation
from evals import first as first_evaluation
from evals import local as local_evaluation
from evals.bars import Bar, all_met
from evals.baseline import WORDS
from evals.egolife import (
    CAPTIONS,
    TITLE,
    EgoReport,
    import_week,
    iou_times,
    questions_in,
    top_3_times,
)
from evals.first import FirstReport, QuestionSet, read_first_questions
from evals.local import LocalReport, OfVideo, read_media_questions, split_by_presence, watch_all
from evals.scores import PercentInterval, Summary
from flows.build import build_each
from flows.workspace import Workspace, open_workspace
from library.params import split_names
from library.progress import Reporter
from store.progress import Meter, import_progress
from strategies.registry import find_strategy

MISSED = 1
"""Exit code where a bar is missed."""

SHOWN = 100
"""Characters of a wrong answer that are printed."""

Out = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write the answers to a JSON lines file.")
]


def local(
    questions: Annotated[
        Path, typer.Argument(metavar="QUESTIONS", help="JSON file of questions, beside the clips.")
    ],
    out: Out = None,
    profile: Profile = None,
    json: Json = False,
) -> None:
    """Measure answers to questions about clips: cited moments and chosen options.

    Clips that are not in memory are watched first, and absent files are left out. The exit code is
    1 if a bar is missed.

    \b
    Example:
      homer eval local media/questions.json --out answers.jsonl
    """
    every, folder = read_media_questions(questions), questions.parent
    present, absent = split_by_presence(every, folder)
    with open_workspace(profile) as workspace, meter() as bar:
        ids, failed = watch_present(workspace, present, folder, bar)
        asked = [question for question in present if question.video in ids]
        bar.start("questions", len(asked))
        report = local_evaluation.evaluate(workspace, asked, ids, absent, out, answer_progress(bar))
    say_json(report_json(report, report.bars)) if json else _show_local(report)
    raise typer.Exit(code_of(report.bars) if not failed else 4)


def egolife(
    folder: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help="Folder with captions.jsonl.gz and questions.json."),
    ],
    strategy: MoreStrategies = None,
    ablate: Annotated[
        bool,
        typer.Option(
            "--ablate", help="Ask these strategies also without each of their parts, and all."
        ),
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", min=1, metavar="N", help="Ask only N questions, spaced evenly over the file."
        ),
    ] = None,
    out: Out = None,
    profile: Profile = None,
    json: Json = False,
) -> None:
    """Measure answers on EgoLife, a week of captions, beside baselines.

    Each question is asked as of its time. Captions that are not in memory are imported first. The
    exit code is 1 if a bar is missed.

    \b
    Example:
      homer eval egolife data/egolife --out answers.jsonl
      homer eval egolife data/egolife --strategy NAME --ablate --limit 50
    """
    others = [find_strategy(name) for name in split_names(strategy)]
    less = [less for one in others if ablate for less in one.ablations()]
    asked = [one.name for one in (*others, *less)]
    questions = questions_in(folder, limit)
    with open_workspace(profile) as workspace, meter() as bar:
        imported = import_week(workspace, folder / CAPTIONS, import_progress(bar, TITLE))
        build_each(workspace, imported.video, others, lambda name: import_progress(bar, name))
        baseline = egolife_evaluation.baseline_of(
            workspace, imported, import_progress(bar, "baseline")
        )
        bar.start("questions", (1 + len(asked)) * len(questions))
        report = egolife_evaluation.evaluate(
            workspace,
            imported,
            questions,
            out,
            answer_progress(bar),
            baseline,
            asked,
        )
    say_json(report_json(report, report.bars)) if json else _show_egolife(report)
    raise typer.Exit(code_of(report.bars))


def _show_local(report: LocalReport) -> None:
    heads = ("video", "questions", "cited %", "choices", "right %", "chance %", "rounds", "seconds")
    rows = [
        (
            row.name,
            row.questions,
            f"{row.cited:.1f}",
            row.choices,
            *("" if share is None else f"{share:.1f}" for share in (row.accuracy, row.chance)),
            f"{row.rounds:g}",
            f"{row.seconds:.2f}",
        )
        for row in (*report.videos, report.every)
    ]
    say_table(heads, rows)
    for answer in report.answers:
        asked, wrong = answer.question, list[str]()
        if not answer.cited:
            marked = ", ".join(f"{start:g}-{end:g}" for start, end in asked.spans_s)
            cited = "nothing" if answer.top is None else f"{answer.top[0]:g}-{answer.top[1]:g}"
            wrong.append(f"cites {cited} s, marked {marked} s")
        if answer.right is False:
            wrong.append(f"chose {answer.option or 'nothing'}, right is {asked.right}")
        if wrong:
            say(f"  {plain_line(asked.id)}: {'; '.join(wrong)}")
    if report.absent:
        say(f"absent, not asked about: {plain_line(', '.join(report.absent))}")
    say(f"{report.every.questions} questions asked in {report.seconds:.0f} s")
    if report.conduct.tokens_in:
        each = report.conduct.tokens_in / max(1, report.conduct.rounds)
        say(f"{each:.0f} tokens read a round, over {report.conduct.rounds} rounds")
    show_bars(report.bars)


def _show_egolife(report: EgoReport) -> None:
    heads = ("", "questions", "right %", "top 1 %", "top 3 %", "top 10 %", "IoU %")
    every = list[tuple[object, ...]]()
    for who, made in (("Homer", report.every.homer), (report.baseline, report.every.plain)):
        figures = _figures(made)
        every.append((f"all: {who}", made.questions, *(f"{one.value:.1f}" for one in figures)))
        resampled = (f"{one.low:.1f}-{one.high:.1f}" for one in figures)
        every.append(("  90 % of resamples", "", *resampled))
    pairs = zip(_figures(report.every.homer), _figures(report.every.plain), strict=True)
    ratios = (f"{a.value / b.value:.2f}" if b.value else "" for a, b in pairs)
    say_table(heads, [*every, ("  times the baseline", "", *ratios)])
    say()
    times = ("top 3, times", "IoU, times", "seconds", "slowest")
    say_table(("answered by", *heads[1:], *times), compared_rows(report))
    say()
    parts = list[tuple[object, ...]]()
    for name, off in report.strategies.items():
        less = find_strategy(name)
        on = report.strategies.get(less.memory)
        if less.without and on is not None:
            pairs = zip(_figures(on.summary), _figures(off.summary), strict=True)
            both = (f"{with_it.value:.1f}, {without.value:.1f}" for with_it, without in pairs)
            parts.append((f"{less.memory}, {' and '.join(sorted(less.without))}", *both))
    if parts:
        say_table(("part: on, off", *heads[2:]), parts)
        say()
    kinds = [
        (f"{kind}: {who}", made.questions, *map(with_interval, _figures(made)))
        for kind, one in report.types.items()
        for who, made in (("Homer", one.homer), ("baseline", one.plain))
    ]
    say_table(("by type", *heads[1:]), kinds)
    say()
    took = report.imported.seconds
    said = "was in memory already" if took is None else f"took {took:.0f} s"
    asked = counted(report.questions, "question")
    say(f"the import {said}; asking {asked} took {report.ask_s:.0f} s")
    show_bars(report.bars)


def compared_rows(report: EgoReport) -> Iterator[tuple[object, ...]]:
    """Yield a row for each baseline and each strategy, over the same questions."""
    plain = report.every.plain
    answered = {report.baseline: (plain, "", "")}
    if report.words is not None:
        answered[WORDS] = (report.words, "", "")
    answered["Homer"] = (report.every.homer, f"{report.ask_s:.0f}", f"{report.slowest_s:.1f}")
    for name, one in report.strategies.items():
        answered[name] = (one.summary, f"{one.seconds:.0f}", f"{one.slowest_s:.1f}")
    for name, (made, *took) in answered.items():
        figures = (made.questions, *map(with_interval, _figures(made)))
        times = (f"{top_3_times(made, plain):.2f}", f"{iou_times(made, plain):.2f}")
        yield (name, *figures, *times, *took)


def _figures(summary: Summary) -> list[PercentInterval]:
    return [summary.accuracy, *summary.found.values(), summary.iou]


def first(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder with the clips.")],
    of: Annotated[
        list[QuestionSet] | None,
        typer.Option("--set", help="A set of questions, again for more; all by default."),
    ] = None,
    questions: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Questions of your own, in the form of Homer's."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the answers to JSON lines, a file a set."),
    ] = None,
    profile: Profile = None,
    json: Json = False,
) -> None:
    """Measure answers to everyday questions: is it right, rightly declined, or wrong?

    Beside what people ask first and what is seen, there are everyday questions in two halves: one
    to work on, and one to look at once, when a change is done. Some cannot be answered, and must be
    declined. Clips that are not in memory are watched first, and absent files are left out. The
    exit code is 1 if a bar is missed.

    \b
    Examples:
      homer eval first media --set everyday_work --out answers.jsonl
      homer eval first media
    """
    sets = {str(one): one.path for one in of or QuestionSet}
    files = {questions.stem: questions} if questions else sets
    reports, failed = list[FirstReport](), False
    with open_workspace(profile) as workspace, meter() as bar:
        for name, path in files.items():
            present, absent = split_by_presence(read_first_questions(path), folder)
            ids, some_failed = watch_present(workspace, present, folder, bar)
            failed = failed or some_failed
            bar.start(name, sum(question.video in ids for question in present))
            evaluate = partial(first_evaluation.evaluate, workspace, name, present, ids, absent)
            own = out and (out if len(files) == 1 else out.with_stem(f"{out.stem}-{name}"))
            reports.append(evaluate(own, answer_progress(bar)))
    if json:
        # The half that is looked at once is not looked into.
        hidden = {str(QuestionSet.HELD): {"answers": ()}}
        say_json([report_json(one, one.bars) | hidden.get(one.of, {}) for one in reports])
    for report in () if json else reports:
        _show_first(report)
    bars = [bar for report in reports for bar in report.bars]
    raise typer.Exit(code_of(bars) if not failed else 4)


def _show_first(report: FirstReport) -> None:
    say(report.of)
    heads = ("kind", "questions", "right", "rightly declined", "wrong", "wrong and sure")
    kinds = (*report.kinds, report.every)
    rows = [(r.name, r.questions, r.right, r.declined, r.wrong, r.sure) for r in kinds]
    say_table(heads, rows)
    levels = [(row.level, row.answers, f"{row.right / row.answers:.0%}") for row in report.levels]
    say_table(("confidence", "answers", "right"), levels)
    for answer in report.answers:
        # The half that is looked at once is not looked into.
        if not answer.right and report.of != QuestionSet.HELD:
            cited = "nothing" if answer.top is None else f"{answer.top[0]:g}-{answer.top[1]:g} s"
            what = "declined" if answer.declined else shortened(plain_line(answer.text), SHOWN)
            asked = plain_line(answer.question.id)
            say(f"  {asked} ({answer.confidence:.2f}, cites {cited}): {what}")
    if report.absent:
        say(f"absent, not asked about: {plain_line(', '.join(report.absent))}")
    say(f"{report.every.questions} questions asked in {report.seconds:.0f} s")
    silent = report.silent
    say(
        f"{silent.remembered} of {silent.clips} clips in which nothing is said have a line on what "
        "is seen, read or heard"
    )
    show_bars(report.bars)
    say()


def watch_present(
    workspace: Workspace, questions: Sequence[OfVideo], folder: Path, bar: Meter
) -> tuple[dict[str, str], bool]:
    """Watch the clips that are asked about, and print which of them failed.

    Returns:
        The id of each clip in memory, by file name, and whether any clip failed.
    """
    ids, failed = watch_all(workspace, questions, folder, Reporter(bar))
    for outcome in failed:
        reason = outcome.error or "some clips failed: run the same command to try them again"
        note(f"homer: {Path(outcome.path).name}: {reason}")
    return ids, bool(failed)


def code_of(bars: Sequence[Bar]) -> int:
    """Return the exit code: 0 where every bar is reached."""
    return 0 if all_met(bars) else MISSED


def report_json(report: Any, bars: Sequence[Bar]) -> dict[str, Any]:
    """Convert a report for JSON: its figures, and every bar with whether it is met."""
    reached = [{**dataclasses.asdict(bar), "met": bar.met} for bar in bars]
    return {**to_jsonable_python(report), "bars": reached}


def show_bars(bars: Sequence[Bar]) -> None:
    """Print a line for each bar."""
    rows = (
        (
            bar.name,
            f"{bar.value:.1f}",
            f"{'at most' if bar.most else 'at least'} {bar.limit:g}",
            "met" if bar.met else "MISSED",
        )
        for bar in bars
    )
    say_table(("bar", "reached", "wanted", ""), rows)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (local, egolife, first):
        app.command(no_args_is_help=True)(command)
