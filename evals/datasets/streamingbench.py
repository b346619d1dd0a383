"""StreamingBench: questions asked as of a moment of a running video, in five tables.

A question of ``Proactive_Output.csv`` is to be answered once something is seen. It is asked as of
the moment at which its answer is due, and its span is the wait. The questions of
``Sequential_Question_Answering.csv`` refer to earlier ones, which are not given here.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator

from domain.errors import InputError
from domain.time import TimeSpan, parse_clock
from evals.dataset import Counts, Dataset, DatasetSource, EvalQuestion, EvalVideo
from evals.datasets.files import (
    Published,
    all_checked,
    dataset,
    file_in,
    question,
    records,
    root_of,
    video,
    video_in,
)

TABLES = {
    "Real_Time_Visual_Understanding": ("real", 2500),
    "Omni_Source_Understanding": ("omni", 1000),
    "Contextual_Understanding": ("omni", 500),
    "Sequential_Question_Answering": ("sqa", 250),
    "Proactive_Output": ("proactive", 250),
}
"""The authors' folder for a table's videos, and its number of questions."""

_ID = re.compile(r"(?P<kind>.+)_sample_(?P<sample>\d+)_\d+", re.ASCII)
_LABEL = re.compile(r"(?<!\s)\s*+([A-H])[.):]\s*")
_CLOCK = r"^\s*[0-9]{1,3}(:[0-9]{1,2}){1,2}(\.[0-9]{1,9})?\s*$"


class _StreamingBenchRow(Published):
    id: str = Field(alias="question_id")
    task_type: str
    question: str
    time_stamp: str = Field(pattern=_CLOCK)
    options: tuple[str, ...] = Field(default=(), max_length=26)
    answer: str = ""
    due: str = Field(default="", alias="ground_truth_time_stamp", pattern=rf"^$|{_CLOCK}")
    output: str = Field(default="", alias="ground_truth_output")

    @field_validator("options", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        """Parse a cell with the options as a list in Python's notation."""
        if not isinstance(value, str):
            return value
        try:
            parsed = ast.literal_eval(value)
        except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError) as error:
            raise ValueError(f"no list of options: {value[:80]!r}") from error
        return (
            joined_options([str(option) for option in parsed])
            if isinstance(parsed, list)
            else value
        )

    @property
    def spans(self) -> tuple[TimeSpan, ...]:
        """Return the wait for what is to be seen, if there is one."""
        start, end = parse_clock(self.time_stamp), parse_clock(self.due or "0")
        return (TimeSpan.of(start, end),) if end >= start and self.due else ()


def joined_options(options: list[str]) -> tuple[str, ...]:
    """Return options without letters, with parts torn off by a line break joined again.

    Only a list that is too long was torn, or repeats itself: the first of each letter counts, and
    they are sorted by letter.
    """
    if not options or not _LABEL.match(options[0]):
        return tuple(options)
    if len(options) <= 4:
        return tuple(_LABEL.sub("", option, count=1).strip() for option in options)
    joined: dict[str, list[str]] = {}
    current: list[str] = []
    for option in options:
        if mark := _LABEL.match(option):
            current = []
            joined.setdefault(mark[1], current)
            option = option[mark.end() :]
        current.append(option.strip())
    return tuple(" ".join(joined[letter]) for letter in sorted(joined))


def read(folder: Path) -> Dataset:
    """Read the questions of the tables that exist.

    Raises:
        InputError: none exists, or one is malformed.
    """
    root = root_of(folder)
    tables = [(table, path) for table in TABLES if (path := _table(folder, table))]
    if not tables:
        file_in(root, *(f"{table}.csv" for table in TABLES))
    rows = [
        (table, *row)
        for table, path in tables
        for row in all_checked(_StreamingBenchRow, records(path))
    ]
    videos = [_video(root, *row) for row in rows]
    return dataset("streamingbench", str(folder), videos, [_question(*row) for row in rows])


def _table(folder: Path, table: str) -> Path | None:
    if folder.is_file():
        return folder if folder.stem == table else None
    try:
        return file_in(folder, f"{table}.csv", f"StreamingBench/{table}.csv")
    except InputError:
        return None


def _parts(place: str, row: _StreamingBenchRow) -> tuple[str, str]:
    """Return the kind of a question, which names a folder, and the number of its video."""
    match = _ID.fullmatch(row.id.strip())
    if match is None:
        raise InputError(f"{place}: question_id: {row.id!r} is not KIND_sample_VIDEO_QUESTION")
    return match["kind"], match["sample"]


def _video(root: Path, table: str, place: str, row: _StreamingBenchRow) -> EvalVideo:
    kind, sample = _parts(place, row)
    under = f"data/{TABLES[table][0]}"
    places = (kind, f"{under}/{kind}", f"videos/{kind}", under)
    file = video_in(root, f"sample_{sample}/video.mp4", place, *places)
    return video(place, name=f"{kind}/sample_{sample}", file=file)


def _question(table: str, place: str, row: _StreamingBenchRow) -> EvalQuestion:
    kind, sample = _parts(place, row)
    return question(
        place,
        id=row.id.strip(),
        video=f"{kind}/sample_{sample}",
        question=row.question,
        options=row.options,
        answer=row.answer.strip() or row.output,
        types=(_title(table), row.task_type.strip()),
        as_of_ms=parse_clock(row.due or row.time_stamp),
        spans=row.spans,
    )


def _title(table: str) -> str:
    return table.replace("_", " ")


SOURCES = (
    DatasetSource(
        name="streamingbench",
        title="StreamingBench",
        licence="research only; see the data set's page",
        where=(
            "huggingface.co/datasets/mjuicem/StreamingBench: the tables of StreamingBench/*.csv, "
            "and the zips unpacked as its README tells, into data/real, data/omni, data/sqa and "
            "data/proactive."
        ),
        read=read,
        published=Counts(900, 4500, {_title(table): size for table, (_, size) in TABLES.items()}),
    ),
)
