"""Charts, and tables with the same numbers for readers who cannot see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from domain.words import translate
from evals.layout import ReportTable
from ui.formatting import escape_markdown, show_table

ChartRow = Mapping[str, Any]
"""One data point: field name -> number or text."""

HEIGHT = 220
"""Pixels."""
COLOURS = ("#1d4ed8", "#c2410c", "#0f766e", "#7e22ce")
"""Distinct for the colour-blind, on light and dark backgrounds."""


def column_chart(caption: str, rows: Sequence[ChartRow], x: str, y: str, key: str) -> None:
    """Draw a column chart over time; ``x`` are dates as text, ``y`` counts."""
    mark = {"type": "bar", "color": COLOURS[0], "width": {"band": 0.8}}
    encoding = {"x": _date_axis(x), "y": _number_axis(y, format="d", tickMinStep=1)}
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
    """Draw a table of a report under its title."""
    title = translate(report.title)
    heads = [translate(head) if head else "" for head in report.heads]
    st.header(escape_markdown(title), anchor=False)
    show_table(title, heads, report.rows)


def numbers_table(rows: Sequence[ChartRow], label: str = "") -> None:
    """Draw the data of a chart as a table in an expander."""
    label = label or translate("The numbers as a table")
    heads = list(dict.fromkeys(name for row in rows for name in row))
    with st.expander(label):
        titles = [*map(translate, heads)]
        show_table(label, titles, [[row.get(name, "") for name in heads] for row in rows])


def _date_axis(name: str) -> dict[str, Any]:
    return {"field": name, "type": "ordinal", "axis": {"title": None, "labelOverlap": True}}


def _number_axis(name: str, **axis: Any) -> dict[str, Any]:
    return {"field": name, "type": "quantitative", "axis": {"title": None, **axis}}


def _share_axis(name: str) -> dict[str, Any]:
    return _number_axis(name, format="%") | {"scale": {"domain": [0, 1]}}


def _draw(caption: str, rows: Sequence[ChartRow], spec: dict[str, Any], key: str) -> None:
    full_spec = {"height": HEIGHT, **spec, "data": {"values": [dict(row) for row in rows]}}
    st.vega_lite_chart(spec=full_spec, alt=caption, key=key)
    st.caption(escape_markdown(caption))
