"""A user's own data set: a table or a list of questions next to the videos; Homer's sets."""

from __future__ import annotations

import json
import re
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase
from typing import Any

from pydantic import AliasChoices, Field, field_validator, model_validator

from domain.errors import InputError
from domain.time import TimeSpan, parse_clock
from evals.dataset import (
    Conditions,
    Dataset,
    DatasetSource,
    EvalVideo,
    QuestionSet,
)
from evals.datasets.files import (
    CAPTION_ENDINGS,
    Published,
    Words,
    all_checked,
    dataset,
    file_in,
    ms,
    question,
    reject_duplicate_ids,
    root_of,
    rows_of,
    video,
    video_in,
)

FILES = tuple(f"questions.{ending}" for ending in ("csv", "tsv", "jsonl", "json", "parquet"))
YEAR_S = 366 * 86_400
"""Limit of times; more than a year is taken as an error."""

_COLUMNS = {
    name: place
    for place, letter in enumerate(ascii_lowercase)
    for name in (letter, letter.upper(), f"option_{letter}", f"choice_{letter}")
}


class _OwnRow(Published):
    video: str = Field(min_length=1)
    question: str = Field(min_length=1)
    id: Words = ""
    options: tuple[Words, ...] = Field(default=(), max_length=26)
    answer: Words = ""
    answer_option: Words = ""
    types: tuple[str, ...] = Field(
        default=(), validation_alias=AliasChoices("types", "type", "kind")
    )
    as_of_ms: int | None = Field(default=None, validation_alias=AliasChoices("as_of", "as_of_s"))
    spans: tuple[TimeSpan, ...] = Field(
        default=(), validation_alias=AliasChoices("spans", "spans_s")
    )
    right: Conditions | None = None

    @model_validator(mode="before")
    @classmethod
    def _columns_are_options(cls, row: Any) -> Any:
        """Collect columns ``A``, ``option_a`` or ``choice_a`` and on as the options.

        Raises:
            ValueError: a letter is missing or repeated, or the line has more cells than there are
                columns.
        """
        if not isinstance(row, dict):
            return row
        if any(row.get(None) or ()):
            raise ValueError("more cells than columns: put words with a comma in quotes")
        cells = [(_COLUMNS[key], row[key]) for key in row if key in _COLUMNS]
        lettered = sorted(
            ((at, cell) for at, cell in cells if cell is not None), key=lambda cell: cell[0]
        )
        if row.get("options") is not None or not lettered:
            return row
        if [at for at, _ in lettered] != list(range(len(lettered))):
            raise ValueError("options: give one for each letter, from A on without a gap")
        return {**row, "options": [cell for _, cell in lettered]}

    @field_validator("options", "types", mode="before")
    @classmethod
    def _several(cls, value: Any) -> Any:
        """Split a cell with several values: JSON, or separated by bars."""
        if not isinstance(value, str):
            return value or ()
        values = json.loads(value) if value.lstrip().startswith("[") else value.split("|")
        return tuple(str(part).strip() for part in values)

    @field_validator("as_of_ms", mode="before")
    @classmethod
    def _moment(cls, value: Any) -> Any:
        return None if value is None else moment(value)

    @field_validator("spans", mode="before")
    @classmethod
    def _stretches(cls, value: Any) -> Any:
        if isinstance(value, str):
            value = [span.rsplit("-", 1) for span in re.split("[;|]", value) if span.strip()]
        return tuple(map(_span, value)) if isinstance(value, list | tuple) else value or ()

    def letter(self) -> str:
        """Return the right option's letter; without options, the answer's own text."""
        if not self.answer_option and self.answer in self.options:
            return ascii_uppercase[self.options.index(self.answer)]
        return self.answer_option or self.answer


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


def read(folder: Path) -> Dataset:
    """Read the questions of ``folder``, which may be the file itself.

    Raises:
        InputError: there is no file of questions, or a record is invalid.
    """
    return read_questions("own", file_in(folder, *FILES), root_of(folder))


def read_questions(name: str, path: Path, folder: Path) -> Dataset:
    """Read a file of questions about the videos in ``folder`` as the data set ``name``.

    Raises:
        InputError: there is no such file, or a record is invalid.
    """
    rows = list(all_checked(_OwnRow, rows_of(path)))
    videos = list[EvalVideo]()
    for place, row in rows:
        if "://" in row.video:
            raise InputError(
                f"{place}: video: name a file of the folder, not an address: {row.video!r}"
            )
        kind = "captions" if row.video.endswith(CAPTION_ENDINGS) else "file"
        source = {kind: video_in(folder, row.video, place, ".", "videos")}
        videos.append(video(place, name=row.video, **source))
    questions = [
        question(
            place,
            id=row.id or str(number),
            video=row.video,
            question=row.question,
            options=row.options,
            answer=row.letter(),
            types=row.types,
            as_of_ms=row.as_of_ms,
            spans=row.spans,
            right=row.right,
        )
        for number, (place, row) in enumerate(rows, 1)
    ]
    reject_duplicate_ids(str(path), questions)
    return dataset(name, str(path), videos, questions)


SETS = Path(__file__).parents[1] / "sets"


def read_set(of: QuestionSet, folder: Path) -> Dataset:
    """Return one of Homer's sets, about the clips in ``folder``."""
    return read_questions(str(of), SETS / f"{of}_questions.json", folder)


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
        read=read,
    ),
)
