"""Curves and columns, with the numbers as a table for whoever does not see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from evals.layout import ReportTable
from ui.words import plain

Row = Mapping[str, Any]
"""A line of the table: column name -> number or words."""

HEIGHT = 220
"""Pixels."""
COLOURS = ("#1d4ed8", "#c2410c", "#0f766e", "#7e22ce")
"""Told apart by those who see no red or green, on light pages and on dark ones."""


def columns(told: str, rows: Sequence[Row], x: str, y: str, key: str) -> None:
    """Columns over time; ``x`` are dates as text, ``y`` counts."""
    mark = {"type": "bar", "color": COLOURS[0], "width": {"band": 0.8}}
    places = {"x": _dates(x), "y": _numbers(y, format="d", tickMinStep=1)}
    _chart(told, rows, {"mark": mark, "encoding": places}, key)


def shares(told: str, rows: Sequence[Row], x: str, y: str, key: str) -> None:
    """A line with points over time; ``y`` are shares from 0 to 1."""
    mark = {"type": "line", "point": {"size": 60, "color": COLOURS[1]}, "color": COLOURS[1]}
    places = {"x": _dates(x), "y": _share(y)}
    _chart(told, rows, {"mark": mark, "encoding": places}, key)


def lines(told: str, rows: Sequence[Row], x: str, y: str, of: str, key: str) -> None:
    """A line for each of ``of``, told apart by colour and dashes, in a band from low to high."""
    across = {"field": x, "type": "quantitative", "axis": {"title": x, "tickMinStep": 1}}
    colour = {
        "field": of,
        "type": "nominal",
        "scale": {"range": list(COLOURS)},
        "title": None,
        "legend": {"symbolOpacity": 1, "orient": "top"},
    }
    band = {
        "mark": {"type": "area", "opacity": 0.15},
        "encoding": {"y": _share("low"), "y2": {"field": "high"}},
    }
    line = {
        "mark": {"type": "line", "point": {"size": 50}},
        "encoding": {"y": _share(y), "strokeDash": {"field": of, "type": "nominal", "title": None}},
    }
    _chart(told, rows, {"encoding": {"x": across, "color": colour}, "layer": [band, line]}, key)


def intervals(told: str, rows: Sequence[Row], x: str, y: str, key: str) -> None:
    """A point for each of ``x`` with a line from low to high; ``y`` are shares from 0 to 1."""
    axis = {"title": None, "labelOverlap": False, "labelLimit": 240}
    place = {"field": x, "type": "nominal", "sort": None, "axis": axis}
    rule = {
        "mark": {"type": "rule", "strokeWidth": 3, "color": COLOURS[0]},
        "encoding": {"x": _share("low") | {"title": None}, "x2": {"field": "high"}},
    }
    point = {
        "mark": {"type": "point", "filled": True, "size": 90, "color": COLOURS[1]},
        "encoding": {"x": _share(y)},
    }
    spec = {"encoding": {"y": place}, "layer": [rule, point]}
    _chart(told, rows, spec | {"height": 50 + 34 * len(rows)}, key)


def table(found: ReportTable) -> None:
    """A table under its title; all its words are data."""
    st.header(plain(found.title), anchor=False)
    heads = [plain(head) or " " * place for place, head in enumerate(found.heads, 1)]
    shown = [dict(zip(heads, map(plain, row), strict=True)) for row in found.rows]
    st.table(shown, hide_index=True)


def numbers(rows: Sequence[Row], label: str = "The numbers as a table") -> None:
    """The same as words and numbers."""
    with st.expander(label):
        shown = [{name: plain(str(value)) for name, value in row.items()} for row in rows]
        st.table(shown, hide_index=True)


def _dates(name: str) -> dict[str, Any]:
    return {"field": name, "type": "ordinal", "axis": {"title": None, "labelOverlap": True}}


def _numbers(name: str, **axis: Any) -> dict[str, Any]:
    return {"field": name, "type": "quantitative", "axis": {"title": None, **axis}}


def _share(name: str) -> dict[str, Any]:
    return _numbers(name, format="%") | {"scale": {"domain": [0, 1]}}


def _chart(told: str, rows: Sequence[Row], spec: dict[str, Any], key: str) -> None:
    whole = {"height": HEIGHT, **spec, "data": {"values": [dict(row) for row in rows]}}
    st.vega_lite_chart(spec=whole, alt=told, key=key)
    st.caption(plain(told))
