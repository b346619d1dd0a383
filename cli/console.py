"""Output of the commands: data on stdout, everything else on stderr.

All of it goes through here, since titles, names and speech come from anyone: control characters
could steer a terminal, and those that change the direction of writing could disguise a line.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import typer

from domain.words import plain_line, printable, without_surrogates


def say(text: str = "") -> None:
    """Print a line of the command's result; bytes of a file's name that are no text become "?"."""
    typer.echo(printable(text))


def note(text: str) -> None:
    """Print a line about the work on stderr, without control characters."""
    typer.echo(printable(text), err=True)


def confirm(question: str) -> None:
    """Ask whether to go on.

    Raises:
        typer.Abort: the answer is no.
    """
    typer.confirm(plain_line(question), abort=True, err=True)


def is_terminal() -> bool:
    """Return whether stderr, where progress goes, is a terminal."""
    return sys.stderr.isatty()


def say_json(data: Any) -> None:
    """Print one JSON document on one line, in UTF-8, keys in the order given."""
    say(escaped(json.dumps(data, ensure_ascii=False, default=str)))


def escaped(line: str) -> str:
    """Escape the characters of a line of JSON that cannot be seen; it means the same."""
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in without_surrogates(line))


def say_table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table."""
    for line in table(heads, rows):
        say(line)


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Yield lines of columns padded to their widest cell; numbers are flush right."""
    # Untrusted words may hold line breaks and control characters.
    cells = [[plain_line("" if cell is None else str(cell)) for cell in row] for row in rows]
    widths = [max(len(text) for text in column) for column in zip(heads, *cells, strict=True)]
    right = [
        bool(cells)
        and all(row[i].replace(".", "", 1).replace("-", "", 1).isdigit() for row in cells)
        for i in range(len(heads))
    ]
    for row in [list(heads), *cells]:
        parts = zip(row, widths, right, strict=True)
        yield "  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in parts).rstrip()
