"""What commands print: data on stdout, everything else on stderr.

All of it goes through here, since titles, names and what was said come from anyone: control
characters would steer a terminal, and those that turn the direction of writing would have a line
show other words than it has.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import typer

from views.words import plain_line, printable, without_surrogates


def say(text: str = "") -> None:
    """A line of the command's result; a file's name may be no text, and is still told."""
    typer.echo(printable(text))


def note(text: str) -> None:
    """A line about the work, for the person watching; no word of it steers their terminal."""
    typer.echo(printable(text), err=True)


def sure(told: str) -> None:
    """Asks whether to go on.

    Raises:
        typer.Abort: the answer is no.
    """
    typer.confirm(plain_line(told), abort=True, err=True)


def is_terminal() -> bool:
    """Whether a person watches stderr, where progress goes."""
    return sys.stderr.isatty()


def say_json(data: Any) -> None:
    """One JSON document on one line, UTF-8, keys in the order given."""
    say(escaped(json.dumps(data, ensure_ascii=False, default=str)))


def escaped(line: str) -> str:
    """A line of JSON that means the same, with escapes for all that cannot be seen."""
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in without_surrogates(line))


def say_table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Columns padded to their widest cell; numbers are flush right."""
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(len(text) for text in column) for column in zip(heads, *cells, strict=True)]
    right = [all(_is_number(row[i]) for row in cells) and bool(cells) for i in range(len(heads))]
    for row in [list(heads), *cells]:
        say(_padded(row, widths, right))


def _padded(row: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    parts = zip(row, widths, right, strict=True)
    return "  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in parts).rstrip()


def _cell(value: object) -> str:
    """Untrusted words may hold line breaks and control characters: a cell is one clean line."""
    text = "" if value is None else str(value)
    return plain_line(text)


def _is_number(text: str) -> bool:
    return bool(text) and text.replace(".", "", 1).replace("-", "", 1).isdigit()
