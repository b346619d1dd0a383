"""How a result looks in a terminal: a sentence, a table by the type of its rows, or JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from cli.console import note, say, say_json, say_table
from domain.alerts import Alert, AlertKind, Hit
from domain.time import in_seconds
from library.params import Page
from views.words import format_span, plain_line

Columns = Mapping[str, Callable[[Any], object]]

TABLES: dict[type[BaseModel], Columns] = {
    Alert: {
        "alert": lambda one: one.name,
        "waits for": lambda one: one.wants,
        "video": lambda one: one.title or "all",
        "threshold": lambda one: f"{one.threshold:g}" if one.kind is AlertKind.TEXT else "",
        "delivery": lambda one: (
            one.place or (f"{one.delivery} of another machine" if one.delivery else "")
        ),
        "hits": lambda one: one.hits,
    },
    Hit: {
        "recorded": lambda one: f"{one.recorded.astimezone():%Y-%m-%d %H:%M:%S}",
        "alert": lambda one: one.alert,
        "video": lambda one: one.title,
        "time": lambda one: format_span(one.span),
        "score": lambda one: f"{one.score:.2f}",
        "delivery": lambda one: f"{one.state}: {one.error}" if one.error else str(one.state),
        "what": lambda one: one.text,
    },
}
"""The columns of a table of these, by their heads."""


SHOWN: dict[type, Callable[[Any], Iterable[str]]] = {}
"""The lines that show one of these."""


def render(result: Any, *, json: bool, empty: str = "") -> None:
    """Print the result of an act; of an empty list what is said of it."""
    rows = result.items if isinstance(result, Page) else result
    if json:
        return say_json(in_seconds(to_jsonable_python(rows)))
    if isinstance(rows, str):
        return say(rows)
    if type(rows) in SHOWN:
        for line in SHOWN[type(rows)](rows):
            say(plain_line(line))
        return None
    rows = rows if isinstance(rows, list | tuple) else [rows]
    if not rows and empty:
        return note(empty)
    columns = TABLES[type(rows[0])] if rows else {}
    say_table([*columns], ([cell(one) for cell in columns.values()] for one in rows))
    if isinstance(result, Page) and result.total > len(rows):
        note(f"{len(rows)} of {result.total}: --limit {result.total}")
    return None
