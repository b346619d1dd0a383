"""Published data sets as specifications: what a record says, and where files lie.

A set is a model of its records (``PublishedRow``), the names of its files of questions, the folders
of its videos, and its published size; one function reads them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from pydantic import PrivateAttr

from domain.errors import InputError
from evals.dataset import Counts, Dataset, DatasetSource
from evals.datasets.files import (
    Published,
    checked,
    dataset,
    file_in,
    inside,
    json_of,
    named,
    question,
    root_of,
    rows_of,
    video,
    video_in,
)

Fields = Mapping[str, Any]
"""The fields of an ``EvalQuestion``; ``at`` is added to the place that errors name."""


class PublishedRow(Published):
    """A published record: a video, and what is asked about it.

    ``_part`` is the part of the set that the record's file is, ``_key`` its name where records
    stand in an object by name, ``_number`` its number in the file, from 1.
    """

    _part: str = PrivateAttr("")
    _key: str = PrivateAttr("")
    _number: int = PrivateAttr(0)

    def placed(self, part: str, key: str, number: int) -> Self:
        """Note where the record was read."""
        self._part, self._key, self._number = part, key, number
        return self

    def about(self) -> tuple[str, str, str]:
        """Return the video's name, the file to look for (with or without ending), its address."""
        raise NotImplementedError

    def asked(self) -> Iterator[Fields]:
        """Yield each question of the record."""
        raise NotImplementedError

    def folders(self) -> Sequence[str]:
        """Return the folders to look for the video in first, besides those of the set."""
        return ()


@dataclass(frozen=True, kw_only=True)
class Specification:
    """A published data set; see ``DatasetSource`` for its words.

    ``files``: the names of its file of questions by part, the first that exists is read; the parts
    of a set of one file are ``""``. Of several parts, those that exist are read. ``by_name``: the
    records stand in an object. ``add(root)`` returns what is added to each record from another file
    of the set. ``keep`` chooses records. ``captions``: files of captions that stand in for missing
    videos. ``baseline``: see ``Dataset``.
    """

    name: str
    title: str
    licence: str
    where: str
    row: type[PublishedRow]
    files: Mapping[str, tuple[str, ...]]
    folders: tuple[str, ...] = ("videos", ".")
    published: Counts
    by_name: bool = False
    add: Callable[[Path], Callable[[Mapping[str, Any]], Fields]] | None = None
    keep: Callable[[Any], bool] = bool
    captions: tuple[str, ...] = ()
    baseline: bool = False

    @property
    def source(self) -> DatasetSource:
        """Return the set as evaluations know it."""
        return DatasetSource(
            name=self.name,
            title=self.title,
            licence=self.licence,
            where=self.where,
            read=self.read,
            published=self.published,
        )

    def read(self, folder: Path) -> Dataset:
        """Read the questions in ``folder``, which may be a file of questions itself.

        Raises:
            InputError: no file of questions is there, or a record is malformed.
        """
        root, paths = root_of(folder), self._paths(folder)
        added = self.add(root) if self.add else None
        among = (inside(root, name, name) for name in self.captions)
        captions = next((path for path in among if path.is_file()), None)
        videos, questions = [], []
        for part, path in paths.items():
            records = (
                (record for _, record in named(json_of(path), str(path)))
                if self.by_name
                else rows_of(path)
            )
            for number, (place, value) in enumerate(records, 1):
                if added and isinstance(value, dict):
                    value = {**value, **added(value)}
                key = place.removeprefix(f"{path}, ") if self.by_name else ""
                row = checked(self.row, (place, value)).placed(part, key, number)
                if not self.keep(row):
                    continue
                name, file_name, url = row.about()
                file = video_in(root, file_name, place, *row.folders(), *self.folders)
                words = None if file else captions
                videos.append(
                    video(
                        place,
                        name=name,
                        url=url,
                        file=file,
                        captions=words,
                        among=words is not None,
                    )
                )
                for fields in row.asked():
                    at = fields.get("at")
                    questions.append(
                        question(
                            f"{place}, {at}" if at else place,
                            video=name,
                            **{key: field for key, field in fields.items() if key != "at"},
                        )
                    )
        place = str(next(iter(paths.values()))) if len(self.files) == 1 else str(folder)
        return replace(dataset(self.name, place, videos, questions), baseline=self.baseline)

    def _paths(self, folder: Path) -> dict[str, Path]:
        """Return the file of each part that exists.

        Raises:
            InputError: there is none.
        """
        if len(self.files) == 1:
            return {part: file_in(folder, *names) for part, names in self.files.items()}
        root, found = root_of(folder), {}
        for part, names in self.files.items():
            paths = [inside(root, name, str(root)) for name in names]
            if folder.is_file():
                paths = [path for path in paths if path.name == folder.name]
            if there := [path for path in paths if path.is_file()]:
                found[part] = there[0]
        if not found:
            raise InputError(f"{root} holds no {' or '.join(n[0] for n in self.files.values())}")
        return found
