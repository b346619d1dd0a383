"""Tables as HTML: the keyboard scrolls those that are wider than the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

import streamlit as st

from domain.words import printable

_TABLE = """<div class="homer-table" role="group" tabindex="0" aria-label="{name}"><table>
<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"""

TABLES = """<style>
.homer-table { overflow-x: auto; width: fit-content; max-width: 100%; border-radius: 0.5rem; }
.homer-table table { border-collapse: collapse; font-size: 0.875rem; }
.homer-table :is(th, td) { padding: 0.25rem 0.5rem; text-align: start; max-width: 30rem;
  overflow-wrap: break-word; border: 1px solid light-dark(#d9dce3, #3d4452); }
.homer-table thead :is(th, td) { font-weight: 600; }
</style>"""
"""How tables look; ``ui/app.py`` draws it once on each page."""


def show_table(name: str, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Draw a table.

    Args:
        name: what it has, for those who do not see it.
        heads: of its columns; "" where none is needed.
        rows: a cell for each column.
    """
    st.html(
        _TABLE.format(
            name=escape(printable(name)),
            heads="".join(map(_head, heads)),
            rows="".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows),
        )
    )


def _head(text: str) -> str:
    return f'<th scope="col">{escape(printable(text))}</th>' if text else "<td></td>"


def _cell(value: object) -> str:
    return f"<td>{escape(printable(str(value)))}</td>"
