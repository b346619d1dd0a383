"""The tables of a report as headings and rows of text, for a terminal and for a page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from domain.evaluation import ErrorType
from domain.evaluation_options import AblationStage
from domain.words import format_number, marked, marked_each, translate
from evals.sampling import Comparison
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
    """Return every question with its answer and verdict."""
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
    """Truncate a text to the length of a cell."""
    line = " ".join(text.split())
    return line if len(line) <= CELL else line[: CELL - 1].rstrip() + "…"


def headline(report: RunReport) -> str:
    """Summarise the run in one line."""
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
