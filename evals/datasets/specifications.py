"""Data sets as specifications: where each field lies in a record, and files in a folder.

A set is a ``Form``: the names of its files of questions, the folders of its videos, and what a
record says of its video and of each question. One function reads them all: published sets, Homer's
own, and a user's table or list of questions next to the videos.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase
from types import EllipsisType
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError

from domain.errors import InputError
from domain.time import TimeSpan, parse_clock
from evals.dataset import Conditions, Dataset, DatasetSource, EvalQuestion, EvalVideo, QuestionSet
from evals.datasets.files import (
    CAPTION_ENDINGS,
    WORDS,
    Words,
    dataset,
    file_in,
    first_in,
    json_of,
    ms,
    named,
    question,
    reject_duplicate_ids,
    root_of,
    rows_of,
    video,
    video_in,
)

T = TypeVar("T")


@dataclass(frozen=True)
class Row:
    """A record, or one of the questions in it; errors name its ``place``.

    ``part`` is the part of the set that its file is, ``key`` its name where records stand in an
    object by name, ``number`` its number in the file, from 1, or in the record, from 0.
    """

    place: str
    fields: Mapping[str, Any]
    part: str = ""
    key: str = ""
    number: int = 0

    def get(self, kind: TypeAdapter[T], *names: str, default: T | EllipsisType = ...) -> T:
        """Return the first of these fields that is there, else the default.

        Raises:
            InputError: it is not of this kind, or there is neither.
        """
        name = next((name for name in names if name in self.fields), None)
        if name is None:
            if isinstance(default, EllipsisType):
                raise InputError(f"{self.place}: {names[0]} is missing")
            return default
        try:
            return kind.validate_python(self.fields[name])
        except RecursionError as error:
            raise InputError(f"{self.place}: {name}: {error}") from error
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False)[0]
            problem = first["msg"].removeprefix("Value error, ")
            at = ".".join(map(str, (name, *first["loc"])))
            raise InputError(f"{self.place}: {at}: {' '.join(problem.split())}") from error

    def text(self, name: str, default: str | EllipsisType = ...) -> str:
        return self.get(WORDS, name, default=default)

    def rows(self, name: str) -> list[Row]:
        """Return the members of a list in it (or one), with the fields of the record around them.

        Raises:
            InputError: it is no list of objects.
        """
        members = self.get(MEMBERS, name, default=[])
        return [
            replace(
                self,
                place=f"{self.place}: {name} {number}",
                fields={**self.fields, **member},
                number=number,
            )
            for number, member in enumerate(members)
        ]

    def inner(self, name: str) -> Row:
        """Return an object in it, with the fields of the record around it.

        Raises:
            InputError: there is none.
        """
        for one in self.rows(name):
            return one
        raise InputError(f"{self.place}: {name} is missing")


MEMBERS: TypeAdapter[list[dict[str, Any]]] = TypeAdapter(
    Annotated[
        list[dict[str, Any]],
        BeforeValidator(lambda value: [value] if isinstance(value, dict) else value or []),
    ]
)

Reading = str | Callable[[Row], Any]
"""The name of a field with words, or what reads something of a record; ValueError: it cannot."""


@dataclass(frozen=True, kw_only=True)
class Form:
    """How a data set is published."""

    # The names of its file of questions by part, the first that exists is read; the part of a set
    # of one file is "". Of several parts, those that exist are read.
    files: Mapping[str, tuple[str, ...]]
    # Reads the fields of an ``EvalQuestion``.
    ask: Callable[[Row], Mapping[str, Any]]
    video: Reading
    # The video's file, with or without ending, where it is not named as the video is.
    file: Reading | None = None
    url: Reading | None = None
    folders: Sequence[str] | Callable[[Row], Sequence[str]] = ("videos", ".")
    # The records stand in an object.
    by_name: bool = False
    # Yields the questions of a record; by default it is one.
    each: Callable[[Row], Sequence[Row]] = lambda row: [row]
    # Finds captions that stand in for a missing video, by the folder and the video's name.
    captions: Callable[[Path, str], Path | None] | None = None
    # They hold other videos, too.
    among: bool = False
    # Returns what is added to each record from another file of the set, by its folder.
    add: Callable[[Path], Callable[[Mapping[str, Any]], Mapping[str, Any]]] | None = None
    # Chooses records.
    keep: Callable[[Row], bool] | None = None
    # Repeated ids are refused.
    own_ids: bool = False
    # See ``Dataset``.
    baseline: bool = False

    def read(self, name: str, folder: Path, root: Path | None = None) -> Dataset:
        """Read the questions in ``folder``, which may be a file of questions, as the set ``name``.

        ``root``: the folder of the videos, if it is another.

        Raises:
            InputError: no file of questions is there, or a record is malformed.
        """
        root, paths = root or root_of(folder), self._paths(folder)
        added = self.add(root) if self.add else None
        videos, questions = list[EvalVideo](), list[EvalQuestion]()
        for part, path in paths.items():
            records = named(json_of(path), str(path)) if self.by_name else rows_of(path)
            for number, (key, place, value) in enumerate(records, 1):
                if not isinstance(value, dict):
                    raise InputError(f"{place}: the record is no object")
                row = Row(place, {**value, **added(value)} if added else value, part, key, number)
                if self.keep is not None and not self.keep(row):
                    continue
                about = self._video(row, root)
                videos.append(about)
                questions += [
                    question(one.place, video=about.name, **_read(one, self.ask))
                    for one in _read(row, self.each)
                ]
        place = str(next(iter(paths.values()))) if len(self.files) == 1 else str(folder)
        if self.own_ids:
            reject_duplicate_ids(place, questions)
        return replace(dataset(name, place, videos, questions), baseline=self.baseline)

    def _paths(self, folder: Path) -> dict[str, Path]:
        """Return the file of each part that exists.

        Raises:
            InputError: there is none.
        """
        if len(self.files) == 1:
            return {part: file_in(folder, names) for part, names in self.files.items()}
        root, found = root_of(folder), {}
        for part, names in self.files.items():
            wanted = [one for one in names if folder == root or Path(one).name == folder.name]
            if path := first_in(root, wanted):
                found[part] = path
        if not found:
            raise InputError(f"{root} holds no {' or '.join(n[0] for n in self.files.values())}")
        return found

    def _video(self, row: Row, root: Path) -> EvalVideo:
        name = _read(row, self.video)
        folders = self.folders(row) if callable(self.folders) else self.folders
        path = video_in(root, _read(row, self.file or self.video), row.place, folders)
        words = path if path and path.name.endswith(CAPTION_ENDINGS) else None
        among = False
        if path is None and self.captions:
            words = self.captions(root, name)
            among = self.among and words is not None
        return video(
            row.place,
            name=name,
            url=_read(row, self.url or (lambda _: "")),
            file=None if words else path,
            captions=words,
            among=among,
        )


def _read(row: Row, reading: Reading) -> Any:
    if isinstance(reading, str):
        return row.text(reading)
    try:
        return reading(row)
    except ValueError as error:
        raise InputError(f"{row.place}: {error}") from error


# A user's own data set, and Homer's sets.


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
