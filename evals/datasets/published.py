"""Published data sets as specifications: where each field lies in a record, and files in a folder.

A set is a ``Form``: the names of its files of questions, the folders of its videos, and what a
record says of its video and of each question. One function reads them all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import EllipsisType
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, TypeAdapter, ValidationError

from domain.errors import InputError
from evals.dataset import Dataset, EvalQuestion, EvalVideo
from evals.datasets.files import (
    CAPTION_ENDINGS,
    WORDS,
    dataset,
    file_in,
    first_in,
    json_of,
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
        """Return a field with words."""
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
    """How a data set is published.

    ``files``: the names of its file of questions by part, the first that exists is read; the part
    of a set of one file is ``""``. Of several parts, those that exist are read. ``by_name``: the
    records stand in an object. ``each`` yields the questions of a record; by default it is one.
    ``ask`` reads the fields of an ``EvalQuestion`` of it. ``file``: the video's file, with or
    without ending, where it is not named as the video is. ``captions`` finds captions that stand in
    for a missing video, by the folder and the video's name; ``among``: they hold other videos, too.
    ``add(root)`` returns what is added to each record from another file of the set. ``keep``
    chooses records. ``own_ids``: repeated ids are refused. ``baseline``: see ``Dataset``.
    """

    files: Mapping[str, tuple[str, ...]]
    ask: Callable[[Row], Mapping[str, Any]]
    video: Reading
    file: Reading | None = None
    url: Reading | None = None
    folders: Sequence[str] | Callable[[Row], Sequence[str]] = ("videos", ".")
    by_name: bool = False
    each: Callable[[Row], Sequence[Row]] = lambda row: [row]
    captions: Callable[[Path, str], Path | None] | None = None
    among: bool = False
    add: Callable[[Path], Callable[[Mapping[str, Any]], Mapping[str, Any]]] | None = None
    keep: Callable[[Row], bool] | None = None
    own_ids: bool = False
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
