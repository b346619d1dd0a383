"""Curves and columns, with the numbers as a table for whoever does not see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

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
    places = {"x": _dates(x), "y": _numbers(y, format="%") | {"scale": {"domain": [0, 1]}}}
    _chart(told, rows, {"mark": mark, "encoding": places}, key)


def numbers(rows: Sequence[Row], label: str = "The numbers as a table") -> None:
    """The same as words and numbers."""
    with st.expander(label):
        shown = [{name: plain(str(value)) for name, value in row.items()} for row in rows]
        st.table(shown, hide_index=True)


def _dates(name: str) -> dict[str, Any]:
    return {"field": name, "type": "ordinal", "axis": {"title": None, "labelOverlap": True}}


def _numbers(name: str, **axis: Any) -> dict[str, Any]:
    return {"field": name, "type": "quantitative", "axis": {"title": None, **axis}}


def _chart(told: str, rows: Sequence[Row], spec: dict[str, Any], key: str) -> None:
    whole = {**spec, "data": {"values": [dict(row) for row in rows]}, "height": HEIGHT}
    st.vega_lite_chart(spec=whole, alt=told, key=key)
    st.caption(plain(told))
