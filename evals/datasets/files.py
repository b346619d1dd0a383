"""Reads the files of a data set: JSON, JSON lines, CSV and Parquet, as records with their places.

Names of files come from the annotations of others: none leads out of the folder.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from domain.errors import InputError
from perception.source import SUFFIXES

VIDEO_ENDINGS = (".mp4", ".mkv", ".webm", ".mov", ".avi", ".m4v", ".MP4")
"""Endings that may be left out, in the order they are looked for."""

CAPTION_ENDINGS = (".srt", ".vtt", ".jsonl", ".jsonl.gz")
"""Endings of timed words, by which a video may be known instead."""

Record = tuple[str, Any]
"""A record beside its place: the file, and the line or number in it."""

Model = TypeVar("Model", bound=BaseModel)


class Published(BaseModel):
    """A record as others publish it: what we do not know of it is not our business."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


def _worded(value: Any) -> Any:
    """Numbers are words here, and nothing is an empty word."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return "" if value is None else value


def _several(value: Any) -> Any:
    """One is a list of one, and none an empty list."""
    return (value,) if isinstance(value, str) else value or ()


Words = Annotated[str, BeforeValidator(_worded)]
"""Words that some publish as a number."""

Seconds = Annotated[float, Field(ge=0, le=1e8, allow_inf_nan=False)]
"""A time in seconds; beyond three years it is taken for a mistake."""

Several = Annotated[tuple[str, ...], BeforeValidator(_several)]
"""Words, or a list of them."""


def root_of(folder: Path) -> Path:
    """The folder, also where its file of questions was named."""
    return folder.parent if folder.is_file() else folder


def file_in(folder: Path, *names: str) -> Path:
    """The first of these files that is there; ``folder`` may itself be a file that is meant.

    Raises:
        InputError: none is there, or it leads out of the folder.
    """
    if folder.is_file():
        return folder
    for name in names:
        found = inside(folder, name, str(folder))
        if found.is_file():
            return found
    raise InputError(f"{folder} holds no {' or '.join(names)}")


def inside(folder: Path, name: str, place: str) -> Path:
    """The path of ``name``, as a record at ``place`` calls it, under ``folder``.

    Raises:
        InputError: the name, or a link it goes by, leads out of the folder.
    """
    path = _under(folder, name, place)
    try:
        within = path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(f"{place}: no file can be called {name!r}: {error}") from error
    if not within:
        raise InputError(_leads_out(folder, name, place))
    return path


def _under(folder: Path, name: str, place: str) -> Path:
    """The same by its letters alone."""
    parts = PurePosixPath(name.replace("\\", "/"))
    if not name or "\0" in name or parts.is_absolute() or ".." in parts.parts:
        raise InputError(_leads_out(folder, name, place))
    return folder / parts


def _leads_out(folder: Path, name: str, place: str) -> str:
    return f"{place}: {name!r} leads out of the folder {folder}: only files within it are read"


def video_in(folder: Path, name: str, place: str, *places: str) -> Path | None:
    """The video ``name`` (with its ending or without) in one of ``places``; None if not there.

    Raises:
        InputError: the name, or a link it goes by, leads out of the folder.
    """
    _under(folder, name, place)
    endings = ("",) if _has_ending(name) else VIDEO_ENDINGS
    names = (f"{under}/{name}{ending}" for under in places for ending in endings)
    here = next((one for one in names if _is_file(_under(folder, one, place))), None)
    return inside(folder, here, place) if here else None


def _has_ending(name: str) -> bool:
    """Whether a name ends as the files do that Homer watches or imports."""
    return name.endswith(CAPTION_ENDINGS) or PurePosixPath(name).suffix.lower() in SUFFIXES


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that is too long for the file system
        return False


def records(path: Path) -> Iterator[Record]:
    """The records of a file, by its ending: a JSON list, JSON lines, CSV, TSV or Parquet.

    Raises:
        InputError: the file cannot be read as what it is called; says which line.
    """
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise InputError(f"{path} is none of {', '.join(_READERS)}")
    return reader(path)


def json_of(path: Path) -> Any:
    """What a JSON file holds.

    Raises:
        InputError: it cannot be read, or is no JSON.
    """
    return _loaded(text_of(path), str(path))


def _loaded(text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place} is no JSON: {error}") from error


def text_of(path: Path) -> str:
    """The text of a file in UTF-8, with or without its mark.

    Raises:
        InputError: it cannot be read as such.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error


def listed(found: Any, place: str) -> Iterator[Record]:
    """The members of a JSON list, each with its number from 1.

    Raises:
        InputError: it is no list.
    """
    if not isinstance(found, list):
        raise InputError(f"{place} is no list of records")
    return ((f"{place}, record {n}", one) for n, one in enumerate(found, 1))


def named(found: Any, place: str) -> Iterator[tuple[str, Record]]:
    """The members of a JSON object by name.

    Raises:
        InputError: it is no object.
    """
    if not isinstance(found, dict):
        raise InputError(f"{place} is no object of records by name")
    return ((name, (f"{place}, {name}", one)) for name, one in found.items())


def _json(path: Path) -> Iterator[Record]:
    return listed(json_of(path), str(path))


def _jsonl(path: Path) -> Iterator[Record]:
    for number, line in enumerate(text_of(path).split("\n"), 1):
        if line.strip():
            place = f"{path}, line {number}"
            yield place, _loaded(line, place)


def _csv(path: Path) -> Iterator[Record]:
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    rows = csv.DictReader(io.StringIO(text_of(path), newline=""), delimiter=delimiter, strict=True)
    try:
        for row in rows:
            yield f"{path}, line {rows.line_num}", {k: v for k, v in row.items() if v != ""}
    except csv.Error as error:
        raise InputError(f"{path}, line {rows.line_num}: {error}") from error


def _parquet(path: Path) -> Iterator[Record]:
    import pyarrow
    from pyarrow.parquet import read_table

    try:
        rows = read_table(path).to_pylist()
    except (OSError, ValueError, TypeError, pyarrow.ArrowException) as error:
        raise InputError(f"{path} is no Parquet: {error}") from error
    return listed(rows, str(path))


_READERS: dict[str, Callable[[Path], Iterator[Record]]] = {
    ".json": _json,
    ".jsonl": _jsonl,
    ".csv": _csv,
    ".tsv": _csv,
    ".parquet": _parquet,
}


def checked(model: type[Model], record: Record) -> Model:
    """The record as ``model``.

    Raises:
        InputError: it is not one; names the place and the field.
    """
    place, found = record
    try:
        return model.model_validate(found)
    except (ValidationError, RecursionError) as error:
        raise InputError(f"{place}: {_told(error)}") from error


def all_checked(model: type[Model], found: Iterable[Record]) -> Iterator[tuple[str, Model]]:
    """Each record as ``model``, beside its place."""
    return ((record[0], checked(model, record)) for record in found)


def _told(error: ValidationError | RecursionError) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_url=False, include_context=False)[0]
    field = ".".join(map(str, first["loc"])) or "the record"
    return " ".join(f"{field}: {first['msg']}".split())
