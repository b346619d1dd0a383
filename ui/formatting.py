"""Format times, durations and sizes, and escape text from outside for Markdown."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape

import streamlit as st

from domain.words import JOINERS, counted, format_number, printable, translate, without_markup


def format_duration(seconds: float) -> str:
    """Format a duration: ``8.2 s``, ``4 min 10 s``, ``2 h 5 min``."""
    if round(seconds, 1) < 60:
        return f"{format_number(seconds, '.1f')} s"
    minutes, secs = divmod(round(seconds), 60)
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if hours else f"{minutes} min {secs} s"


def format_bytes(size: float) -> str:
    """Format a size in bytes: ``512 bytes``, ``3.1 MB``."""
    power = min(4, max(0, math.floor(math.log10(max(1.0, size)) / 3)))
    if power < 4 and round(size / 1000**power, min(power, 1)) >= 1000:
        power += 1  # It would be rounded to 1000 of the smaller unit.
    if not power:
        return translate("{size} bytes").format(size=f"{size:.0f}")
    unit = ("", "kB", "MB", "GB", "TB")[power]
    return f"{format_number(size / 1000**power, '.1f')} {unit}"


def format_usage(tokens: int, cost_usd: float) -> str:
    """Format what model calls took: ``1,200 tokens, 0.0031 US dollars``; no cost where none."""
    used = counted(tokens, "token")
    return f"{used}, {format_cost(cost_usd)}" if cost_usd else used


def format_cost(cost_usd: float, spec: str = ".4f") -> str:
    """Format a cost: ``0.0031 US dollars``."""
    return translate("{amount} US dollars").format(amount=format_number(cost_usd, spec))


def format_date(at: datetime) -> str:
    """Format a date and time in UTC, to the minute."""
    return at.astimezone(UTC).strftime(translate("%Y-%m-%d %H:%M UTC"))


def format_day(at: datetime) -> str:
    return at.strftime(translate("%Y-%m-%d"))


_SPECIAL = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~$:&@^=])")


def escape_markdown(text: str) -> str:
    """Escape text so that Markdown shows it verbatim, on one line and without links."""
    return _SPECIAL.sub(r"\\\1", without_markup(printable(text, JOINERS).strip()))


# Tables as HTML: the keyboard scrolls those that are wider than the page.

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
    lines = ((f"<td>{escape(printable(str(value)))}</td>" for value in row) for row in rows)
    st.html(
        _TABLE.format(
            name=escape(printable(name)),
            heads="".join(
                f'<th scope="col">{escape(printable(text))}</th>' if text else "<td></td>"
                for text in heads
            ),
            rows="".join(f"<tr>{''.join(cells)}</tr>" for cells in lines),
        )
    )
