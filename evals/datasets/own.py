"""A user's own data set: a table or a list of questions next to the videos; Homer's sets."""

from __future__ import annotations

import json
import re
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, TypeAdapter

from domain.time import TimeSpan, parse_clock
from evals.dataset import Conditions, Dataset, DatasetSource, QuestionSet
from evals.datasets.files import Words, ms
from evals.datasets.published import Form, Row

FILES = tuple(f"questions.{ending}" for ending in ("csv", "tsv", "jsonl", "json", "parquet"))
YEAR_S = 366 * 86_400
"""Limit of times; more than a year is taken as an error."""

_COLUMNS = {
    name: place
    for place, letter in enumerate(ascii_lowercase)
    for name in (letter, letter.upper(), f"option_{letter}", f"choice_{letter}")
}


def _several(value: Any) -> Any:
    """Split a cell with several values: JSON, or separated by bars."""
    if not isinstance(value, str):
        return value or ()
    values = json.loads(value) if value.lstrip().startswith("[") else value.split("|")
    return tuple(str(part).strip() for part in values)


def moment(value: Any) -> int:
    """Convert seconds, ``MM:SS``, ``H:MM:SS`` or ``d2 H:MM:SS`` to milliseconds.

    Raises:
        ValueError: it is none of these, or more than a year.
    """
    if isinstance(value, str):
        time_ms = parse_clock(value)
    elif isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= YEAR_S:
        time_ms = ms(value)
    else:
        raise ValueError(f"{value!r} is no time: write seconds, MM:SS or H:MM:SS")
    if time_ms > YEAR_S * 1000:
        raise ValueError(f"{value!r} is not within a year of video")
    return time_ms


def _span(ends: Any) -> TimeSpan:
    if not isinstance(ends, list | tuple) or len(ends) != 2:
        raise ValueError("a span is a start and an end, as in 0:10-0:25 or [10, 25]")
    return TimeSpan.of(moment(ends[0]), moment(ends[1]))


SOME: TypeAdapter[tuple[str, ...]] = TypeAdapter(
    Annotated[tuple[Words, ...], BeforeValidator(_several), Field(max_length=26)]
)
ASKED: TypeAdapter[int | None] = TypeAdapter(
    Annotated[int | None, BeforeValidator(lambda value: None if value is None else moment(value))]
)
SPANS: TypeAdapter[tuple[TimeSpan, ...]] = TypeAdapter(
    Annotated[
        tuple[Annotated[TimeSpan, BeforeValidator(_span)], ...],
        BeforeValidator(
            lambda value: (
                [span.rsplit("-", 1) for span in re.split("[;|]", value) if span.strip()]
                if isinstance(value, str)
                else value or ()
            )
        ),
    ]
)
RIGHT: TypeAdapter[Conditions | None] = TypeAdapter(Conditions | None)


def _options(row: Row) -> tuple[str, ...]:
    """Return the options: a cell, or the columns ``A``, ``option_a`` or ``choice_a`` and on.

    Raises:
        ValueError: a letter is missing or repeated.
    """
    cells = [(_COLUMNS[name], cell) for name, cell in row.fields.items() if name in _COLUMNS]
    lettered = sorted((at, str(cell)) for at, cell in cells if cell is not None)
    if row.fields.get("options") is not None or not lettered:
        return row.get(SOME, "options", default=())
    if [at for at, _ in lettered] != list(range(len(lettered))):
        raise ValueError("options: give one for each letter, from A on without a gap")
    return tuple(cell for _, cell in lettered)


def _video(row: Row) -> str:
    if any(row.fields.get(None) or ()):  # type: ignore[call-overload] # what a table has no column for
        raise ValueError("more cells than columns: put words with a comma in quotes")
    name = row.text("video")
    if not name or "://" in name:
        raise ValueError(f"video: name a file of the folder, not an address: {name!r}")
    return name


def own_question(row: Row) -> dict[str, Any]:
    options, answer = _options(row), row.text("answer", default="")
    chosen = row.text("answer_option", default="")
    if not chosen and answer in options:
        chosen = ascii_uppercase[options.index(answer)]
    return {
        "id": row.text("id", default="") or str(row.number),
        "question": row.text("question"),
        "options": options,
        "answer": chosen or answer,
        "types": row.get(SOME, "types", "type", "kind", default=()),
        "as_of_ms": row.get(ASKED, "as_of", "as_of_s", default=None),
        "spans": row.get(SPANS, "spans", "spans_s", default=()),
        "right": row.get(RIGHT, "right", default=None),
    }


FORM = Form(
    files={"": FILES}, folders=(".", "videos"), video=_video, ask=own_question, own_ids=True
)


SETS = Path(__file__).parents[1] / "sets"


def read_set(of: QuestionSet, folder: Path) -> Dataset:
    """Return one of Homer's sets, about the clips in ``folder``."""
    return FORM.read(str(of), SETS / f"{of}_questions.json", folder)


SOURCES = (
    DatasetSource(
        name="own",
        title="Questions of your own",
        licence="yours",
        where=(
            "Put questions.csv (or .tsv, .jsonl, .json, .parquet) into a folder, the videos beside "
            "it or in videos/. Columns: video, question; optional: id, options (with | between, or "
            "columns option_a, option_b ...), answer (a letter, or words), type, as_of (seconds or "
            "MM:SS), spans (0:10-0:25; 1:00-1:05)."
        ),
        read=FORM.read,
    ),
)
