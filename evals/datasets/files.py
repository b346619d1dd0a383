"""Reads the files of a data set (JSON, JSON lines, CSV, Parquet) as records with their places.

Names of files come from foreign annotations: none may lead out of the folder.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, count
from pathlib import Path, PurePosixPath
from string import ascii_uppercase
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError

from domain.errors import InputError
from domain.time import TimeSpan
from domain.words import marked
from evals.dataset import Dataset, EvalQuestion, EvalVideo
from perception.source import SUFFIXES

VIDEO_ENDINGS = (".mp4", ".mkv", ".webm", ".mov", ".avi", ".m4v", ".MP4")
"""Endings that may be omitted, in the order they are tried."""

CAPTION_ENDINGS = (".srt", ".vtt", ".jsonl", ".jsonl.gz")
"""Endings of captions, which may replace a video."""

Record = tuple[str, str, Any]
"""A record after its name, "" where it has none, and its place: the file, and the line or number
in it."""


def _worded(value: Any) -> Any:
    """Turn numbers into text, and None into ""."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return "" if value is None else value


Words = Annotated[str, BeforeValidator(_worded)]
"""Text that some publish as a number."""
WORDS: TypeAdapter[str] = TypeAdapter(Words)

Seconds = Annotated[float, Field(ge=0, le=1e8, allow_inf_nan=False)]
"""A time in seconds; more than three years is taken as an error."""
SECONDS: TypeAdapter[float] = TypeAdapter(Seconds)

SEVERAL: TypeAdapter[tuple[str, ...]] = TypeAdapter(
    Annotated[
        tuple[str, ...],
        BeforeValidator(lambda value: (value,) if isinstance(value, str) else value or ()),
    ]
)
"""Words, or a list of them."""


def _in_order(options: Any) -> Any:
    """Return options by letter as a tuple in the order of their letters."""
    if not isinstance(options, dict):
        raise ValueError("options must be an object with a letter each")
    if sorted(map(str, options)) != list(ascii_uppercase[: len(options)]):
        raise ValueError(f"options must be lettered from A on: {', '.join(map(str, options))}")
    return tuple(options[name] for name in sorted(options))


LETTERED: TypeAdapter[tuple[str, ...]] = TypeAdapter(
    Annotated[tuple[str, ...], BeforeValidator(_in_order), Field(min_length=2)]
)
"""Options by their letters."""


def root_of(folder: Path) -> Path:
    """Return the folder, also if its file of questions is given."""
    return folder.parent if folder.is_file() else folder


def file_in(folder: Path, names: Sequence[str]) -> Path:
    """Return the first of these files that exists; ``folder`` may itself be the file.

    Raises:
        InputError: none exists, or it leads out of the folder.
    """
    path = folder if folder.is_file() else first_in(folder, names)
    if path is None:
        raise InputError(f"{folder} holds no {' or '.join(names)}")
    return path


def first_in(folder: Path, names: Sequence[str]) -> Path | None:
    """Return the first of these files of a folder that exists; None: there is none.

    Raises:
        InputError: a name, or a link, leads out of the folder.
    """
    paths = (inside(folder, name, str(folder)) for name in names)
    return next((path for path in paths if path.is_file()), None)


def inside(folder: Path, name: str, place: str) -> Path:
    """Return the path of ``name`` under ``folder``, for a record at ``place``.

    Raises:
        InputError: the name, or a link in it, leads out of the folder.
    """
    path = _under(folder, name, place)
    try:
        is_inside = path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(f"{place}: no file can be called {name!r}: {error}") from error
    if not is_inside:
        raise InputError(_leads_out(folder, name, place))
    return path


def _under(folder: Path, name: str, place: str) -> Path:
    """Return the path, checked by its text alone."""
    parts = PurePosixPath(name.replace("\\", "/"))
    if not name or "\0" in name or parts.is_absolute() or ".." in parts.parts:
        raise InputError(_leads_out(folder, name, place))
    return folder / parts


def _leads_out(folder: Path, name: str, place: str) -> str:
    return marked(
        f"{place}: {name!r} leads out of the folder {folder}: only files within it are read"
    )


def video_in(folder: Path, name: str, place: str, places: Sequence[str]) -> Path | None:
    """Find the video ``name`` (with or without ending) in one of ``places``; None if missing.

    Raises:
        InputError: the name, or a link in it, leads out of the folder.
    """
    _under(folder, name, place)
    # Check whether a name has the ending of a video or caption file.
    has_ending = name.endswith(CAPTION_ENDINGS) or PurePosixPath(name).suffix.lower() in SUFFIXES
    endings = ("",) if has_ending else VIDEO_ENDINGS
    for candidate in (f"{under}/{name}{ending}" for under in places for ending in endings):
        with suppress(OSError):  # The name may be too long for the file system.
            if _under(folder, candidate, place).is_file():
                return inside(folder, candidate, place)
    return None


def records(path: Path) -> Iterator[Record]:
    """Read the records of a file, by its ending: JSON, JSON lines, CSV, TSV or Parquet.

    Raises:
        InputError: the file is malformed; names the line.
    """
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise InputError(f"{path} is none of {', '.join(_READERS)}")
    return reader(path)


def json_of(path: Path) -> Any:
    """Read a JSON file.

    Raises:
        InputError: it cannot be read, or is not JSON.
    """
    return _loaded(text_of(path), str(path))


def _loaded(text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place} is no JSON: {error}") from error


def text_of(path: Path) -> str:
    """Read a file in UTF-8, with or without a byte order mark.

    Raises:
        InputError: it cannot be read, or is not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error


def listed(members: Any, place: str) -> Iterator[Record]:
    """Return the members of a JSON list, each with its number from 1.

    Raises:
        InputError: it is not a list.
    """
    if not isinstance(members, list):
        raise InputError(f"{place} is no list of records")
    return (("", f"{place}, record {n}", member) for n, member in enumerate(members, 1))


def named(members: Any, place: str) -> Iterator[Record]:
    """Return the members of a JSON object by name.

    Raises:
        InputError: it is not an object.
    """
    if not isinstance(members, dict):
        raise InputError(f"{place} is no object of records by name")
    return ((name, f"{place}, {name}", member) for name, member in members.items())


def _jsonl(path: Path) -> Iterator[Record]:
    for number, line in enumerate(text_of(path).split("\n"), 1):
        if line.strip():
            place = f"{path}, line {number}"
            yield "", place, _loaded(line, place)


def _csv(path: Path) -> Iterator[Record]:
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    rows = csv.DictReader(io.StringIO(text_of(path), newline=""), delimiter=delimiter, strict=True)
    try:
        for row in rows:
            yield "", f"{path}, line {rows.line_num}", {k: v for k, v in row.items() if v != ""}
    except csv.Error as error:
        raise InputError(f"{path}, line {rows.line_num}: {error}") from error


def _parquet(path: Path) -> Iterator[Record]:
    # PyArrow is slow to import; few data sets come as Parquet.
    import pyarrow
    from pyarrow.parquet import read_table

    try:
        rows = read_table(path).to_pylist()
    except (OSError, ValueError, TypeError, pyarrow.ArrowException) as error:
        raise InputError(f"{path} is no Parquet: {error}") from error
    return listed(rows, str(path))


_READERS: dict[str, Callable[[Path], Iterator[Record]]] = {
    ".json": lambda path: listed(json_of(path), str(path)),
    ".jsonl": _jsonl,
    ".csv": _csv,
    ".tsv": _csv,
    ".parquet": _parquet,
}


def rows_of(path: Path) -> Iterator[Record]:
    """Read the records; a JSON file may also be an object with ``questions``."""
    if path.suffix.lower() != ".json":
        return records(path)
    document = json_of(path)
    return listed(document.get("questions") if isinstance(document, dict) else document, str(path))


# Builds the questions and videos of a data set from records, for every reader.

_HALF = re.compile("[\ud800-\udfff]")
_LABEL = re.compile(r"\s*\(?([A-Z])(?:[.):]|\s*$)\s*", re.ASCII)


def question(place: str, **fields: Any) -> EvalQuestion:
    """Build one question from the record at ``place``; of its types each that is not empty, once.

    Raises:
        InputError: a field is invalid.
    """
    with _named_errors(place, "the question"):
        types = tuple(filter(None, dict.fromkeys(fields.pop("types", ()))))
        built = EvalQuestion(types=types, **fields)
        words = (built.id, built.video, built.question, built.answer)
        _check_storable([*words, *built.options, *built.types])
        return built


def video(place: str, **fields: Any) -> EvalVideo:
    """Build one video from the record at ``place``.

    Raises:
        InputError: a field is invalid.
    """
    with _named_errors(place, "the video"):
        built = EvalVideo(**fields)
        _check_storable([built.name, built.url])
        return built


@contextmanager
def _named_errors(place: str, what: str) -> Iterator[None]:
    """Raise errors as one line that names the record and the field."""
    try:
        yield
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"])) or what
        raise InputError(f"{place}: {field}: {first['msg']}") from error
    except ValueError as error:
        raise InputError(f"{place}: {what}: {error}") from error


def _check_storable(words: Iterable[str]) -> None:
    """Refuse text that UTF-8 or the database cannot hold: JSON may escape half a character."""
    if any("\0" in text or _HALF.search(text) for text in words):
        raise ValueError("a NUL or half a character is in its words")


def dataset(
    name: str, place: str, videos: Iterable[EvalVideo], questions: Sequence[EvalQuestion]
) -> Dataset:
    """Build the data set, each video once; repeated question ids get a suffix.

    Raises:
        InputError: there is no question.
    """
    if not questions:
        raise InputError(f"{place} holds no question of {name}")
    by_name = {video.name: video for video in videos}
    seen, unique = set[str](), list[EvalQuestion]()
    for item in questions:  # The second of an id gets ``#2``, and so on.
        ids = chain([item.id], (f"{item.id}#{n}" for n in count(2)))
        free = next(one for one in ids if one not in seen)
        seen.add(free)
        unique.append(item if free == item.id else item.model_copy(update={"id": free}))
    return Dataset(name, tuple(by_name.values()), tuple(unique))


def reject_duplicate_ids(place: str, questions: Iterable[EvalQuestion]) -> None:
    """Refuse repeated ids, where they are the user's own.

    Raises:
        InputError: names the id.
    """
    repeated = [name for name, times in Counter(item.id for item in questions).items() if times > 1]
    if repeated:
        raise InputError(f"{place}: the question id {repeated[0]!r} comes twice")


def without_labels(options: tuple[str, ...]) -> tuple[str, ...]:
    """Return options without their letters (``A. Red``, ``(B) Blue``), if all have their own."""
    marks = [_LABEL.match(option) for option in options]
    letters = [mark[1] if mark else "" for mark in marks]
    if letters != list(ascii_uppercase[: len(options)]):
        return options
    return tuple(option[mark.end() :] for option, mark in zip(options, marks, strict=True) if mark)


def letter(index: int) -> str:
    """Return the letter of the option at ``index`` from 0; an invalid index matches no option."""
    return ascii_uppercase[index] if 0 <= index < len(ascii_uppercase) else str(index)


def ms(seconds: float) -> int:
    """Convert seconds to whole milliseconds."""
    return round(seconds * 1000)


def instant(start_ms: int) -> TimeSpan:
    """Return the second that begins there, for a set that gives a moment without a length."""
    return TimeSpan.of(start_ms, start_ms + 1000)


def youtube(key: str) -> str:
    return f"https://www.youtube.com/watch?v={key}"
