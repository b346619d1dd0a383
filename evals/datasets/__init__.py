"""The data sets by name; a reader's module is loaded when its data set is read."""

from __future__ import annotations

from collections import Counter
from functools import cache
from importlib import import_module
from pathlib import Path

from pydantic import computed_field
from pydantic.dataclasses import dataclass

from domain.errors import InputError, NotFound
from evals.dataset import Counts, Dataset, DatasetSource

MODULES = ("specifications", "streams", "films", "egolife")
"""Modules of this package, in the order of the list; each has ``SOURCES``."""


@cache
def sources() -> tuple[DatasetSource, ...]:
    """Return every data set that Homer can read."""
    modules = (import_module(f"evals.datasets.{name}") for name in MODULES)
    return tuple(item for module in modules for item in module.SOURCES)


def source(name: str) -> DatasetSource:
    """Find the data set of this name.

    Raises:
        NotFound: there is none; names those that exist.
    """
    for item in sources():
        if item.name == name:
            return item
    known = ", ".join(item.name for item in sources())
    raise NotFound(f"there is no data set {name!r}: there are {known}")


def read(name: str, folder: Path) -> Dataset:
    """Read the data set ``name`` in ``folder``.

    Raises:
        NotFound: there is no data set of this name.
        InputError: a file is missing or malformed; says which and where.
    """
    dataset_source = source(name)
    if not folder.exists():
        raise InputError(
            f"there is no folder {folder}. {dataset_source.title}: {dataset_source.where}"
        )
    return dataset_source.read(name, folder)


# Counts of a data set that was read, compared with the published ones.


@dataclass(frozen=True)
class Census:
    """The size of a copy. ``unlike`` lists, a line each, the differences from the published set.

    ``types`` and ``by_video`` count questions; ``as_of``: those asked as of a moment; ``answered``:
    those with a known answer; ``timed``: those whose answer has a time. ``missing``: the videos
    without a file or captions.
    """

    name: str
    videos: int
    questions: int
    types: dict[str, int]
    by_video: dict[str, int]
    as_of: int
    answered: int
    timed: int
    missing: tuple[str, ...]
    compared: bool
    unlike: tuple[str, ...]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def whole(self) -> bool | None:
        """Check whether the counts are the published ones; None: none are published."""
        return not self.unlike if self.compared else None

    @property
    def exit_code(self) -> int:
        """The code of a command that ends with it: 1 where it differs from what was published."""
        return 1 if self.unlike else 0


def census(copy: Dataset, published: Counts) -> Census:
    questions = copy.questions
    types = Counter(kind for question in questions for kind in question.types)
    counts = {
        "videos": (len(copy.videos), published.videos),
        "questions": (len(questions), published.questions),
        **{f"type {kind}": (types[kind], count) for kind, count in published.types.items()},
    }
    return Census(
        name=copy.name,
        videos=len(copy.videos),
        questions=len(questions),
        types=dict(types.most_common()),
        by_video=dict(Counter(question.video for question in questions)),
        as_of=sum(question.as_of_ms is not None for question in questions),
        answered=sum(bool(question.answer) for question in questions),
        timed=sum(bool(question.spans) for question in questions),
        missing=tuple(v.name for v in copy.videos if not (v.file or v.captions)),
        compared=published != Counts(),
        unlike=tuple(
            f"{what}: {actual}, published {expected}"
            for what, (actual, expected) in counts.items()
            if expected not in (None, actual)
        ),
    )
