"""The tables of a report as headings and rows of text, for a terminal and for a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from domain.evaluation import ErrorType
from domain.evaluation_options import AblationStage
from domain.marked import marked, marked_each
from domain.words import format_number, translate
from evals.paired import Comparison
from evals.tables import ALL, AnsweredQuestion, Effect, MeanInterval, RunReport, TypeScore

CELL = 200
"""Maximum characters in a cell."""


@dataclass(frozen=True)
class ReportTable:
    """A table: its title, its headings, and its rows of text."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def tables(report: RunReport) -> list[ReportTable]:
    """Return every table of a report that has rows."""
    counts = marked_each("arm", "type", "questions", "unjudged")
    shares = marked_each("right %", "cited %", "first cited %", "tIoU %", "Ref@300 %")
    first = 0 if len({score.arm for score in report.scores}) > 1 else 1
    rows = tuple(_score(score)[first:] for score in report.scores)
    heads = (*counts, *shares)[first:]
    if any(score.m3_bench for score in report.scores):
        heads += marked_each("right by M3-Bench %")
        rows = tuple(
            (*row, percent(one.m3_bench)) for row, one in zip(rows, report.scores, strict=True)
        )
    scores = ReportTable(marked("Answers by type (90 % of resamples)"), heads, rows)
    all_tables = [
        scores,
        _comparison_table(report),
        _reliability(report),
        _strategies(report),
        *_auto(report),
        _ablation(report),
        *_learning(report),
        _usage(report),
        _faults(report),
    ]
    return [table for table in all_tables if table.rows]


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


def _score(type_score: TypeScore) -> tuple[str, ...]:
    figures = (
        type_score.right,
        type_score.cited,
        type_score.top,
        type_score.iou,
        type_score.ref300,
    )
    return (
        type_score.arm,
        type_score.type,
        str(type_score.questions),
        str(type_score.unjudged),
        *map(percent, figures),
    )


def _reliability(report: RunReport) -> ReportTable:
    heads = marked_each("third", "questions", "confidence", "said %", "right %", "within 10 points")
    rows = (
        (
            name,
            str(third.right.of),
            "-".join(format_number(end, ".2f") for end in (third.least, third.most)),
            format_number(100 * third.said, ".1f"),
            percent(third.right),
            "yes" if third.true else "NO",
        )
        for name, third in zip(("low", "middle", "high"), report.reliability, strict=False)
    )
    return ReportTable(
        marked("How true confidence is, on questions that were not fitted on"), heads, tuple(rows)
    )


def _comparison_table(report: RunReport) -> ReportTable:
    heads = marked_each("type", "questions", "right %", "baseline %", "points above", "p")
    rows = (
        (
            comparison.type,
            str(comparison.effect.questions),
            *map(percent, (comparison.effect.after, comparison.effect.before)),
            points(comparison.effect.difference),
            format_number(comparison.effect.p, ".3f"),
        )
        for comparison in report.beside
    )
    return ReportTable(
        marked("Beside the option closest to any remembered line"), heads, tuple(rows)
    )


def _strategies(report: RunReport) -> ReportTable:
    heads = marked_each("strategy", "questions", "right %", "points", "p", "cited %", "tIoU %")
    costs = marked_each("rounds", "tokens", "seconds")
    rows = (
        (
            row.strategy,
            str(row.score.questions),
            percent(row.score.right),
            points(row.effect.difference) if row.effect else "",
            format_number(row.effect.p, ".3f") if row.effect else "",
            *map(percent, (row.score.cited, row.score.iou)),
            format_number(row.usage.rounds, ".1f"),
            format_number(row.usage.tokens, ".0f"),
            format_number(row.usage.seconds, ".1f"),
        )
        for row in report.strategies
    )
    return ReportTable(marked("Strategies side by side"), (*heads, *costs), tuple(rows))


def _auto(report: RunReport) -> Iterator[ReportTable]:
    auto = report.auto
    if auto is None:
        return
    yield effect_table(
        marked("Auto beside the strategy that was best on the tested half"), auto.best
    )
    if auto.learned is not None:
        title = marked("Auto beside the strategy that was best on the half that was learned from")
        yield effect_table(title, auto.learned)
    rows = (
        (one.strategy, str(one.questions), str(one.learned), percent(one.right))
        for one in auto.chosen
    )
    heads = marked_each("strategy", "questions", "by a skill", "right %")
    yield ReportTable(marked("What auto chose"), heads, tuple(rows))


def _ablation(report: RunReport) -> ReportTable:
    heads = marked_each("memory", "questions", "right %", "cited %", "tIoU %")
    rows = (
        (
            score.arm if score.arm == AblationStage.ENTITY else f"+ {score.arm}",
            str(score.questions),
            *map(percent, (score.right, score.cited, score.iou)),
        )
        for score in report.ablation
    )
    return ReportTable(marked("How much of the memory is searched"), heads, tuple(rows))


def _learning(report: RunReport) -> Iterator[ReportTable]:
    if report.effect is not None:
        yield effect_table(
            marked("Effect of learning, on the questions it is tested on"), report.effect
        )
    heads = marked_each(
        "part", "batch", "arm", "answers", "right %", "so far %", "had a skill %", "skills"
    )
    yield ReportTable(
        marked("Evolution, batch after batch"),
        heads,
        tuple(
            (
                str(point.part),
                str(point.batch + 1),
                point.arm,
                str(point.answers),
                percent(point.right),
                percent(point.so_far),
                format_number(100 * point.given, ".0f"),
                str(point.in_use),
            )
            for point in report.curve
        ),
    )
    yield ReportTable(
        marked("Skills"),
        marked_each(
            "skill", "since batch", "versions", "banned after", "given to", "right with it %"
        ),
        tuple(
            (
                point.name,
                "before" if point.since < 0 else str(point.since + 1),
                str(point.versions),
                "" if point.banned_after is None else str(point.banned_after + 1),
                str(point.given),
                percent(point.right),
            )
            for point in report.skills
        ),
    )


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


def _usage(report: RunReport) -> ReportTable:
    heads = marked_each(
        "arm", "questions", "rounds", "tokens", "seconds", "dollars", "dollars in all"
    )
    rows = (
        (
            arm_usage.arm,
            str(arm_usage.questions),
            format_number(arm_usage.rounds, ".1f"),
            format_number(arm_usage.tokens, ".0f"),
            format_number(arm_usage.seconds, ".2f"),
            format_number(arm_usage.cost_usd, ".4f"),
            format_number(arm_usage.total_usd, ".2f"),
        )
        for arm_usage in report.usage
        if arm_usage.questions
    )
    return ReportTable(marked("What an answer takes, on average"), heads, tuple(rows))


def _faults(report: RunReport) -> ReportTable:
    known = [
        fault for fault in ErrorType if any(fault in counts for counts in report.faults.values())
    ]
    rows = (
        (arm, *(str(counts.get(fault, 0)) for fault in known))
        for arm, counts in report.faults.items()
        if counts
    )
    return ReportTable(
        marked("Why answers are wrong"), (marked("arm"), *map(str, known)), tuple(rows)
    )


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
    heads = ("arm", "id", "question", "reference", "answer", "", "why", "fault", "trajectory")
    return ReportTable(marked("Questions"), heads, tuple(_question(row) for row in rows))


def _question(row: AnsweredQuestion) -> tuple[str, ...]:
    texts = (row.question, row.reference, row.option or row.answer)
    verdict = {True: "right", False: "wrong", None: "unjudged" if row.judge else "not asked yet"}
    rest = (verdict[row.right], cell(row.why), str(row.fault or ""), row.trajectory)
    return row.arm, row.id, *map(cell, texts), *rest


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
