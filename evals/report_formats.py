"""A report as headings and rows of text for a terminal and a page, as CSV, and as an HTML page."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template
from typing import TypeVar

from domain.errors import InputError
from domain.evaluation import AnswerUsage, ErrorType, Verdict
from domain.evaluation_options import AblationStage
from domain.words import format_number, marked, marked_each, translate
from evals.datasets import source
from evals.statistics import Comparison
from evals.tables import (
    ALL,
    AnsweredQuestion,
    ArmUsage,
    BaselineRow,
    ChosenStrategy,
    ConfidenceThird,
    Effect,
    MeanInterval,
    Point,
    RunReport,
    SkillUse,
    StrategyScore,
    TypeScore,
)
from store.files import open_private

T = TypeVar("T")
Columns = Mapping[str, Callable[[T], object]]
"""What a table says of each of its rows, by the heads of its columns."""

CELL = 200
"""Maximum characters in a cell."""


@dataclass(frozen=True)
class ReportTable:
    """A table: its title, its headings, and its rows of text."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def percent(share: MeanInterval | None) -> str:
    """Format a share in percent with its interval; "" of nothing."""
    if share is None:
        return ""
    value = format_number(100 * share.value, ".1f")
    return f"{value} ({100 * share.low:.0f}-{100 * share.high:.0f})"


def points(effect: MeanInterval | None) -> str:
    """Format a difference in percentage points with its sign and interval."""
    if effect is None:
        return ""
    value = format_number(100 * effect.value, "+.1f")
    return translate("{value} ({low} to {high})").format(
        value=value, low=f"{100 * effect.low:+.0f}", high=f"{100 * effect.high:+.0f}"
    )


_SCORES: Columns[TypeScore] = {
    marked("arm"): lambda one: one.arm,
    marked("type"): lambda one: one.type,
    marked("questions"): lambda one: one.questions,
    marked("unjudged"): lambda one: one.unjudged,
    marked("right %"): lambda one: percent(one.right),
    marked("cited %"): lambda one: percent(one.cited),
    marked("first cited %"): lambda one: percent(one.top),
    marked("tIoU %"): lambda one: percent(one.iou),
    marked("Ref@300 %"): lambda one: percent(one.ref300),
}
_BESIDE: Columns[BaselineRow] = {
    marked("type"): lambda one: one.type,
    marked("questions"): lambda one: one.effect.questions,
    marked("right %"): lambda one: percent(one.effect.after),
    marked("baseline %"): lambda one: percent(one.effect.before),
    marked("points above"): lambda one: points(one.effect.difference),
    marked("p"): lambda one: format_number(one.effect.p, ".3f"),
}
_RELIABILITY: Columns[tuple[str, ConfidenceThird]] = {
    marked("third"): lambda one: one[0],
    marked("questions"): lambda one: one[1].right.of,
    marked("confidence"): lambda one: "-".join(
        format_number(end, ".2f") for end in (one[1].least, one[1].most)
    ),
    marked("said %"): lambda one: format_number(100 * one[1].said, ".1f"),
    marked("right %"): lambda one: percent(one[1].right),
    marked("within 10 points"): lambda one: "yes" if one[1].true else "NO",
}
_STRATEGIES: Columns[StrategyScore] = {
    marked("strategy"): lambda one: one.strategy,
    marked("questions"): lambda one: one.score.questions,
    marked("right %"): lambda one: percent(one.score.right),
    marked("points"): lambda one: points(one.effect.difference) if one.effect else "",
    marked("p"): lambda one: format_number(one.effect.p, ".3f") if one.effect else "",
    marked("cited %"): lambda one: percent(one.score.cited),
    marked("tIoU %"): lambda one: percent(one.score.iou),
    marked("rounds"): lambda one: format_number(one.usage.rounds, ".1f"),
    marked("tokens"): lambda one: format_number(one.usage.tokens, ".0f"),
    marked("seconds"): lambda one: format_number(one.usage.seconds, ".1f"),
}
_CHOSEN: Columns[ChosenStrategy] = {
    marked("strategy"): lambda one: one.strategy,
    marked("questions"): lambda one: one.questions,
    marked("by a skill"): lambda one: one.learned,
    marked("right %"): lambda one: percent(one.right),
}
_ABLATION: Columns[TypeScore] = {
    marked("memory"): lambda one: one.arm if one.arm == AblationStage.ENTITY else f"+ {one.arm}",
    marked("questions"): lambda one: one.questions,
    marked("right %"): lambda one: percent(one.right),
    marked("cited %"): lambda one: percent(one.cited),
    marked("tIoU %"): lambda one: percent(one.iou),
}
_EVOLUTION: Columns[Point] = {
    marked("part"): lambda one: one.part,
    marked("batch"): lambda one: one.batch + 1,
    marked("arm"): lambda one: one.arm,
    marked("answers"): lambda one: one.answers,
    marked("right %"): lambda one: percent(one.right),
    marked("so far %"): lambda one: percent(one.so_far),
    marked("had a skill %"): lambda one: format_number(100 * one.given, ".0f"),
    marked("skills"): lambda one: one.in_use,
}
_SKILLS: Columns[SkillUse] = {
    marked("skill"): lambda one: one.name,
    marked("since batch"): lambda one: "before" if one.since < 0 else one.since + 1,
    marked("versions"): lambda one: one.versions,
    marked("banned after"): lambda one: "" if one.banned_after is None else one.banned_after + 1,
    marked("given to"): lambda one: one.given,
    marked("right with it %"): lambda one: percent(one.right),
}
_USAGE: Columns[ArmUsage] = {
    marked("arm"): lambda one: one.arm,
    marked("questions"): lambda one: one.questions,
    marked("rounds"): lambda one: format_number(one.rounds, ".1f"),
    marked("tokens"): lambda one: format_number(one.tokens, ".0f"),
    marked("seconds"): lambda one: format_number(one.seconds, ".2f"),
    marked("dollars"): lambda one: format_number(one.cost_usd, ".4f"),
    marked("dollars in all"): lambda one: format_number(one.total_usd, ".2f"),
}


def tables(report: RunReport) -> list[ReportTable]:
    names = ("low", "middle", "high")
    columns = dict(_SCORES)
    if len({score.arm for score in report.scores}) < 2:
        del columns["arm"]
    if any(score.m3_bench for score in report.scores):
        columns[marked("right by M3-Bench %")] = lambda one: percent(one.m3_bench)
    found = [
        _laid_out(marked("Answers by type (90 % of resamples)"), report.scores, columns),
        _laid_out(
            marked("Beside the option closest to any remembered line"), report.beside, _BESIDE
        ),
        _laid_out(
            marked("How true confidence is, on questions that were not fitted on"),
            [*zip(names, report.reliability, strict=False)],
            _RELIABILITY,
        ),
        _laid_out(marked("Strategies side by side"), report.strategies, _STRATEGIES),
    ]
    if report.auto is not None:
        title = marked("Auto beside the strategy that was best on the tested half")
        found.append(effect_table(title, report.auto.best))
        title = marked("Auto beside the strategy that was best on the half that was learned from")
        found += [effect_table(title, report.auto.learned)] if report.auto.learned else []
        found.append(_laid_out(marked("What auto chose"), report.auto.chosen, _CHOSEN))
    found.append(
        _laid_out(marked("How much of the memory is searched"), report.ablation, _ABLATION)
    )
    if report.effect is not None:
        title = marked("Effect of learning, on the questions it is tested on")
        found.append(effect_table(title, report.effect))
    used = [one for one in report.usage if one.questions]
    faults = {arm: counts for arm, counts in report.faults.items() if counts}

    def count(fault: ErrorType) -> Callable[[tuple[str, Mapping[ErrorType, int]]], object]:
        return lambda row: row[1].get(fault, 0)

    known = [fault for fault in ErrorType if any(fault in counts for counts in faults.values())]
    of_fault = {str(fault): count(fault) for fault in known}
    found += [
        _laid_out(marked("Evolution, batch after batch"), report.curve, _EVOLUTION),
        _laid_out(marked("Skills"), report.skills, _SKILLS),
        _laid_out(marked("What an answer takes, on average"), used, _USAGE),
        _laid_out(
            marked("Why answers are wrong"),
            [*faults.items()],
            {marked("arm"): lambda row: row[0], **of_fault},
        ),
    ]
    return [table for table in found if table.rows]


def _laid_out(title: str, rows: Iterable[T], columns: Columns[T]) -> ReportTable:
    made = (tuple(str(cell_of(row)) for cell_of in columns.values()) for row in rows)
    return ReportTable(title, tuple(columns), tuple(made))


def effect_table(title: str, effect: Effect) -> ReportTable:
    """Return the table that compares two ways of answering."""
    heads = (
        "",
        *marked_each("questions", "right %", "points more", "better", "worse", "p (McNemar)"),
    )
    rest = (
        points(effect.difference),
        str(effect.better),
        str(effect.worse),
        format_number(effect.p, ".3f"),
    )
    rows = (
        (effect.first, str(effect.questions), percent(effect.before), "", "", "", ""),
        (effect.second, str(effect.questions), percent(effect.after), *rest),
    )
    return ReportTable(title, heads, rows)


def changes_table(comparison: Comparison) -> ReportTable:
    """Return the questions whose answer changed from wrong to right, or back."""
    rows = (
        (
            flip.id,
            "better" if flip.better else "worse",
            cell(flip.question),
            cell(flip.first),
            cell(flip.second),
        )
        for flip in comparison.changes
    )
    heads = ("question", "", "asks", comparison.effect.first, comparison.effect.second)
    return ReportTable(marked("Questions that changed"), heads, tuple(rows))


def questions_table(rows: Sequence[AnsweredQuestion]) -> ReportTable:
    verdict: Mapping[bool | None, str] = {True: "right", False: "wrong"}
    columns: Columns[AnsweredQuestion] = {
        "arm": lambda row: row.arm,
        "id": lambda row: row.id,
        "question": lambda row: cell(row.question),
        "reference": lambda row: cell(row.reference),
        "answer": lambda row: cell(row.option or row.answer),
        "": lambda row: verdict.get(row.right, "unjudged" if row.judge else "not asked yet"),
        "why": lambda row: cell(row.why),
        "fault": lambda row: row.fault or "",
        "trajectory": lambda row: row.trajectory,
    }
    return _laid_out(marked("Questions"), rows, columns)


def cell(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= CELL else line[: CELL - 1].rstrip() + "…"


def headline(report: RunReport) -> str:
    total = report.headline
    right = (
        translate("{share} % right").format(share=percent(total.right))
        if total.right
        else translate("nothing judged yet")
    )
    cited = (
        translate(", {share} % of citations hold marked evidence").format(
            share=percent(total.cited)
        )
        if total.cited
        else ""
    )
    of = translate(" of {count} judged").format(count=total.right.of) if total.right else ""
    kind = "" if total.type == ALL else f" ({total.type})"
    return f"{report.main}: {right}{of}{kind}{cited}"


# Exports: the rows as CSV, all of it as one HTML page that needs no network.


PAGE = Path(__file__).with_name("page.html")
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters that a spreadsheet reads as a formula."""
WIDTH, HEIGHT, EDGE = 720, 300, 40
COLOURS = ("#00695c", "#b35c00")


def as_csv(rows: Sequence[AnsweredQuestion]) -> str:
    """Return one line per question and arm, with all that is recorded of it."""
    out = io.StringIO()
    # What was asked stands first, then what the answer took, then the verdict.
    names = sorted(
        AnsweredQuestion.model_fields,
        key=lambda name: (name in Verdict.model_fields, name in AnswerUsage.model_fields),
    )
    writer = csv.writer(out)
    writer.writerow(names)
    writer.writerows([_plain(getattr(row, name)) for name in names] for row in rows)
    return out.getvalue()


def _plain(value: object) -> str:
    """Format a value as a cell: several joined by bars, and no text as a formula."""
    if isinstance(value, tuple):
        value = " | ".join(map(str, value))
    if value is None:
        return ""
    if not isinstance(value, str):
        return str(value)
    return f"'{value}" if value.startswith(FORMULA) else value


def as_page(report: RunReport) -> str:
    """Return the whole page; all text is escaped."""
    settings, run = report.run.settings, report.run
    facts = (
        headline(report),
        f"data set {settings.dataset}, {settings.questions} questions",
        f"profile {settings.profile}, protocol {settings.protocol}",
        f"open answers judged by {settings.judge or 'nobody'}",
        f"begun {run.began_at:%Y-%m-%d %H:%M}, {run.state}",
        f"{report.cost_usd:.2f} US dollars",
    )
    return Template(PAGE.read_text(encoding="utf-8")).substitute(
        title=escape(f"Evaluation {run.name}"),
        facts=escape(" · ".join(facts)),
        remarks="".join(f'<p class="remark">{escape(remark)}</p>' for remark in report.remarks),
        tables="".join(map(_table, tables(report))),
        curve=_curve(report.curve),
        questions=_table(questions_table(report.questions)),
    )


def _table(table: ReportTable) -> str:
    heads = "".join(f'<th scope="col">{escape(head)}</th>' for head in table.heads)
    rows = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in table.rows)
    caption = f"<caption>{escape(table.title)}</caption>"
    return f"<table>{caption}<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"


def _cell(text: str) -> str:
    kind = ' class="n"' if text[:1].isdigit() or text[:1] in "+-" else ' dir="auto"'
    return f"<td{kind}>{escape(text)}</td>"


def _curve(points: Sequence[Point]) -> str:
    """Draw the share right so far over the answers, one line per arm, of the tested part."""
    arms = list(dict.fromkeys(point.arm for point in points))
    lines = [[p for p in points if p.arm == arm and p.part == "test" and p.so_far] for arm in arms]
    if not any(lines):
        return ""
    most = max(sum(p.answers for p in line) for line in lines)
    drawn = ""
    for number, arm in enumerate(arms):
        places, answered = list[str](), 0
        for point in lines[number]:
            answered += point.answers
            value = point.so_far.value if point.so_far else 0.0
            x = EDGE + (WIDTH - EDGE - 10) * answered / most
            places.append(f"{x:.1f},{10 + (HEIGHT - EDGE - 10) * (1 - value):.1f}")
        colour = COLOURS[number % len(COLOURS)]
        dots = "".join(
            '<circle cx="{}" cy="{}" r="4" fill="{}"/>'.format(*place.split(","), colour)
            for place in places
        )
        name = f'<text x="{EDGE + 10}" y="{30 + 18 * number}" fill="{colour}">{escape(arm)}</text>'
        path = f'points="{" ".join(places)}" fill="none" stroke="{colour}" stroke-width="2"'
        drawn += f"<polyline {path}/>{dots}{name}"
    axis = f'<path d="M{EDGE} 10V{HEIGHT - EDGE}H{WIDTH - 10}" fill="none" stroke="#555"/>'
    ends = (
        f'<text x="4" y="20">100 %</text><text x="4" y="{HEIGHT - EDGE}">0 %</text>'
        f'<text x="{WIDTH - 120}" y="{HEIGHT - 15}">{most} answers</text>'
    )
    return (
        f'<svg role="img" aria-label="Share right so far, over the answers" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" font-size="13">{axis}{ends}{drawn}</svg>'
    )


def write(path: Path, text: str) -> None:
    """Write an export, readable by its owner only.

    Raises:
        InputError: the file cannot be written.
    """
    try:
        with open_private(path, errors="replace") as file:
            file.write(text)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from error


# The answers of a run in the form that the leaderboard of its data set reads.


@dataclass(frozen=True)
class Submission:
    """The written answers of an arm, of so many; ``wanted`` by the data set, None: unknown."""

    file: Path
    arm: str
    answers: int
    wanted: int | None


def write_submissions(folder: Path, report: RunReport) -> list[Submission]:
    """Write a file for each arm of a run that chose options.

    Raises:
        InputError: the data set has no leaderboard, nothing was chosen, or nothing can be written.
        NotFound: there is no such data set.
    """
    run, asked = report.run.name, source(report.run.settings.dataset)
    if asked.submission is None:
        raise InputError(f"{asked.title} has no leaderboard that Homer can write for")
    chosen: dict[str, dict[str, str]] = {}
    for row in report.questions:
        if row.option:
            chosen.setdefault(row.arm, {})[row.id] = row.option
    if not chosen:
        raise InputError(f"the run {run} has chosen no option yet")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder} cannot be made: {error.strerror or error}") from error
    written = []
    names = set[str]()
    for arm, letters in chosen.items():
        name = unique = re.sub(r"[^a-z0-9.+]+", "-", arm.lower()).strip("-")
        number = 1
        while unique in names:
            number += 1
            unique = f"{name}-{number}"
        names.add(unique)
        file = folder / f"{run}-{unique}.json"
        write(file, json.dumps(asked.submission(letters), indent=1) + "\n")
        written.append(Submission(file, arm, len(letters), asked.published.questions))
    return written
