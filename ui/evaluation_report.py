"""Charts and questions of an evaluation run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import streamlit as st

from domain.evaluation import QuestionPart
from domain.people import tags_in_words
from domain.words import counted, format_number, marked, shortened, translate
from evals.layout import cell, percent
from evals.tables import ALL, AnsweredQuestion, Point, RunReport
from ui import charts
from ui.formatting import escape_markdown, format_duration, format_usage
from ui.navigation import choice_param, page_link, paginate

MAX_NAME_CHARS = 40
"""Characters of a type's name in a chart."""


def show_curves(report: RunReport) -> None:
    """Draw accuracy over answers with and without skills, and accuracy by question type."""
    curve = list(_curve_rows([score for score in report.curve if score.part is QuestionPart.TEST]))
    scores = [
        score for score in report.scores if score.arm == report.main and score.right is not None
    ]
    if len({row["answers"] for row in curve}) > 1:
        st.header(translate("With and without skills"), anchor=False)
        last = {
            point.arm: point.so_far for point in report.curve if point.part is QuestionPart.TEST
        }
        ends = "; ".join(f"{arm} {percent(share)} %" for arm, share in last.items())
        curve_caption = translate(
            "Cumulative share of right answers over the test questions. At the end: "
            "{ends}. The table Evolution has every batch."
        ).format(ends=ends)
        charts.line_chart(curve_caption, curve, "answers", "right so far", "arm", "evolution")
    if len(scores) > 1:
        st.header(translate("Right answers by type"), anchor=False)
        ends = "; ".join(
            f"{shortened(score.type, MAX_NAME_CHARS)} {percent(score.right)} %"
            for score in scores[:12]
        )
        more = (
            translate("; and {count} more in the table").format(count=len(scores) - 12)
            if len(scores) > 12
            else ""
        )
        type_caption = translate("Bars are 90 % bootstrap intervals. {ends}{more}.").format(
            ends=ends, more=more
        )
        by_type = [
            {
                "type": translate("all questions")
                if score.type == ALL
                else shortened(score.type, MAX_NAME_CHARS),
                "right": share.value,
                "low": share.low,
                "high": share.high,
            }
            for score in scores
            if (share := score.right)
        ]
        charts.interval_chart(type_caption, by_type, "type", "right", "by_type")
    _show_reliability(report)
    # Draw the time of an answer in each arm; and its cost, where models were paid for.
    rows: list[dict[str, Any]] = [
        {"arm": used.arm, "seconds": used.seconds, "US dollars": used.cost_usd}
        for used in report.usage
        if used.questions
    ]
    if not rows:
        return
    paid = any(row["US dollars"] for row in rows)
    st.header(
        translate("Cost of an answer") if paid else translate("Time of an answer"), anchor=False
    )
    y, unit = ("US dollars", translate("US dollars")) if paid else ("seconds", translate("seconds"))
    ends = "; ".join(f"{row['arm']} {format_number(row[y], '.4g')} {unit}" for row in rows)
    charts.amount_chart(
        translate("Mean of an answer: {ends}.").format(ends=ends), rows, "arm", y, "cost"
    )


def _show_reliability(report: RunReport) -> None:
    """Draw the share right of each third of the answers by confidence."""
    if not report.reliability:
        return
    st.header(translate("Reliability"), anchor=False)
    rows = [
        {
            "answers": translate("confidence {share}").format(
                share=format_number(third.said, ".0%")
            ),
            "right": third.right.value,
            "low": third.right.low,
            "high": third.right.high,
        }
        for third in report.reliability
    ]
    ends = "; ".join(
        translate("{answers}: {share} right").format(
            answers=row["answers"], share=format_number(third.right.value, ".0%")
        )
        for row, third in zip(rows, report.reliability, strict=True)
    )
    caption = translate(
        "Thirds of the answers by confidence, with the share that is right and its 90 % "
        "interval: the nearer both are, the more a confidence can be relied on. {ends}."
    ).format(ends=ends)
    charts.interval_chart(caption, rows, "answers", "right", "reliability")


def _curve_rows(points: Sequence[Point]) -> Iterator[charts.ChartRow]:
    """Yield each arm's cumulative accuracy with its interval."""
    done: dict[str, int] = {}
    for point in points:
        done[point.arm] = done.get(point.arm, 0) + point.answers
        if point.so_far is not None:
            yield {
                "arm": point.arm,
                "answers": done[point.arm],
                "right so far": point.so_far.value,
                "low": point.so_far.low,
                "high": point.so_far.high,
            }


QUESTIONS_PER_PAGE = 15
"""Questions per page."""
ANY = marked("all")
VERDICTS = {True: marked("right"), False: marked("wrong"), None: marked("unjudged")}


def show_questions(rows: Sequence[AnsweredQuestion]) -> None:
    """List the questions that pass the filters, a page at a time."""
    st.header(translate("Questions"), anchor=False)
    if not rows:
        st.caption(translate("No question is planned yet."))
        return
    arms = list(dict.fromkeys(row.arm for row in rows))
    kinds = sorted({kind for row in rows for kind in row.types})
    faults = sorted({str(row.fault) for row in rows if row.fault})
    columns = st.columns(4)
    arm = _filter_box(columns[0], translate("Arm"), arms, "arm")
    verdict = _filter_box(columns[1], translate("Answer"), list(VERDICTS.values()), "answer")
    kind = _filter_box(columns[2], translate("Type"), kinds, "type")
    fault = _filter_box(columns[3], translate("Fault"), faults, "fault")
    found = [
        row
        for row in rows
        if arm in (ANY, row.arm)
        and verdict in (ANY, VERDICTS[row.right])
        and (kind == ANY or kind in row.types)
        and fault in (ANY, str(row.fault))
    ]
    if not found:
        st.caption(translate("No question passes these filters."))
        return
    offset = paginate(len(found), "questions", QUESTIONS_PER_PAGE)
    for row in found[offset : offset + QUESTIONS_PER_PAGE]:
        with st.container(border=True, key=f"question_{row.arm}_{row.id}"):
            if row.trajectory:
                page_link(
                    "trajectory", escape_markdown(cell(row.question)), trajectory=row.trajectory
                )
            else:
                st.write(escape_markdown(cell(row.question)))
            judged = translate(VERDICTS[row.right]) if row.judge else translate("not asked yet")
            answer = row.option or tags_in_words(row.answer) or translate("nothing")
            reference = escape_markdown(cell(row.reference)) or translate("none")
            lines = [
                f"**{judged}**: {escape_markdown(cell(answer))}",
                translate("Reference: {reference}").format(reference=reference),
            ]
            lines += [escape_markdown(cell(row.why))] if row.why else []
            st.markdown("  \n".join(lines))
            facts = [row.arm, *row.types]
            facts += [translate(row.fault)] if row.fault else []
            facts += (
                [translate("skills: {names}").format(names=" ".join(row.skills))]
                if row.skills
                else []
            )
            if row.trajectory:
                facts += [counted(row.rounds, "round"), format_duration(row.seconds)]
                if row.tokens:
                    facts.append(format_usage(row.tokens, row.cost_usd))
            st.caption(escape_markdown(", ".join(facts)))


def _filter_box(
    column: st.delta_generator.DeltaGenerator, label: str, choices: list[str], key: str
) -> str:
    return choice_param(
        label, [ANY, *choices], key, partial(column.selectbox, disabled=not choices)
    )
