"""Charts with tables of the same numbers for readers who cannot see them; those of evaluations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from domain.evaluation import QuestionPart
from domain.people import tags_in_words
from domain.words import counted, format_number, marked, shortened, translate
from evals.report_formats import ReportTable, cell, percent
from evals.tables import ALL, AnsweredQuestion, Point, RunReport
from ui.formatting import escape_markdown, format_duration, format_usage, show_table
from ui.navigation import choice_param, page_link, paginate

ChartRow = Mapping[str, Any]
"""One data point: field name -> number or text."""

HEIGHT = 220
"""Pixels."""
COLOURS = ("#1d4ed8", "#c2410c", "#0f766e", "#7e22ce")
"""Distinct for the colour-blind, on light and dark backgrounds."""


def column_chart(caption: str, rows: Sequence[ChartRow], x: str, y: str, key: str) -> None:
    """Draw a column chart over time; ``x`` are dates as text, ``y`` counts."""
    mark = {"type": "bar", "color": COLOURS[0], "width": {"band": 0.8}}
    counts = {"title": None, "format": "d", "tickMinStep": 1}
    encoding = {"x": _date_axis(x), "y": {"field": y, "type": "quantitative", "axis": counts}}
    _draw(caption, rows, {"mark": mark, "encoding": encoding}, key)


def share_chart(caption: str, rows: Sequence[ChartRow], x: str, y: str, key: str) -> None:
    """Draw a line with points over time; ``y`` are shares in [0, 1]."""
    mark = {"type": "line", "point": {"size": 60, "color": COLOURS[1]}, "color": COLOURS[1]}
    encoding = {"x": _date_axis(x), "y": _share_axis(y)}
    _draw(caption, rows, {"mark": mark, "encoding": encoding}, key)


def line_chart(
    caption: str, rows: Sequence[ChartRow], x: str, y: str, series: str, key: str
) -> None:
    """Draw a line for each of ``series`` by colour and dashes, in a band from low to high."""
    x_axis = {"field": x, "type": "quantitative", "axis": {"title": translate(x), "tickMinStep": 1}}
    colour = {
        "field": series,
        "type": "nominal",
        "scale": {"range": list(COLOURS)},
        "title": None,
        "legend": {"symbolOpacity": 1, "orient": "top"},
    }
    band = {
        "mark": {"type": "area", "opacity": 0.15},
        "encoding": {"y": _share_axis("low"), "y2": {"field": "high"}},
    }
    line = {
        "mark": {"type": "line", "point": {"size": 50}},
        "encoding": {
            "y": _share_axis(y),
            # Colours alone do not tell series apart for everybody.
            "strokeDash": {"field": series, "type": "nominal", "title": None},
        },
    }
    _draw(caption, rows, {"encoding": {"x": x_axis, "color": colour}, "layer": [band, line]}, key)


def interval_chart(caption: str, rows: Sequence[ChartRow], x: str, y: str, key: str) -> None:
    """Draw a point for each of ``x`` with its interval; ``y`` are shares in [0, 1]."""
    axis = {"title": None, "labelOverlap": False, "labelLimit": 240}
    x_axis = {"field": x, "type": "nominal", "sort": None, "axis": axis}
    rule = {
        "mark": {"type": "rule", "strokeWidth": 3, "color": COLOURS[0]},
        "encoding": {"x": _share_axis("low") | {"title": None}, "x2": {"field": "high"}},
    }
    point = {
        "mark": {"type": "point", "filled": True, "size": 90, "color": COLOURS[1]},
        "encoding": {"x": _share_axis(y)},
    }
    spec = {"encoding": {"y": x_axis}, "layer": [rule, point]}
    _draw(caption, rows, spec | {"height": 50 + 34 * len(rows)}, key)


def amount_chart(caption: str, rows: Sequence[ChartRow], x: str, y: str, key: str) -> None:
    """Draw a bar for each of ``x``; ``y`` are amounts from 0 on."""
    axis = {"title": None, "labelOverlap": False, "labelLimit": 240}
    encoding = {
        "y": {"field": x, "type": "nominal", "sort": None, "axis": axis},
        "x": {"field": y, "type": "quantitative", "axis": {"title": translate(y)}},
    }
    mark = {"type": "bar", "color": COLOURS[0]}
    _draw(caption, rows, {"mark": mark, "encoding": encoding, "height": 50 + 34 * len(rows)}, key)


def report_table(report: ReportTable) -> None:
    title = translate(report.title)
    heads = [translate(head) if head else "" for head in report.heads]
    st.header(escape_markdown(title), anchor=False)
    show_table(title, heads, report.rows)


def numbers_table(rows: Sequence[ChartRow]) -> None:
    label = translate("The numbers as a table")
    heads = list(dict.fromkeys(name for row in rows for name in row))
    with st.expander(label):
        titles = [*map(translate, heads)]
        show_table(label, titles, [[row.get(name, "") for name in heads] for row in rows])


def _date_axis(name: str) -> dict[str, Any]:
    return {"field": name, "type": "ordinal", "axis": {"title": None, "labelOverlap": True}}


def _share_axis(name: str) -> dict[str, Any]:
    axis = {"title": None, "format": "%"}
    return {"field": name, "type": "quantitative", "axis": axis, "scale": {"domain": [0, 1]}}


def _draw(caption: str, rows: Sequence[ChartRow], spec: dict[str, Any], key: str) -> None:
    full_spec = {"height": HEIGHT, **spec, "data": {"values": [dict(row) for row in rows]}}
    st.vega_lite_chart(spec=full_spec, alt=caption, key=key)
    st.caption(escape_markdown(caption))


# An evaluation run.


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
        line_chart(curve_caption, curve, "answers", "right so far", "arm", "evolution")
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
        interval_chart(type_caption, by_type, "type", "right", "by_type")
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
    amount_chart(translate("Mean of an answer: {ends}.").format(ends=ends), rows, "arm", y, "cost")


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
    interval_chart(caption, rows, "answers", "right", "reliability")


def _curve_rows(points: Sequence[Point]) -> Iterator[ChartRow]:
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
