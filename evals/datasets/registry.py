"""The data sets by name. A reader's module is loaded when its data set is read."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path

from domain.errors import InputError, NotFound
from evals.dataset import Dataset, DatasetSource

MODULES = (
    "own",
    "m3_bench",
    "video_mme",
    "lvbench",
    "egoschema",
    "ovo_bench",
    "streamingbench",
    "longvideobench",
    "egolife",
    "hippovlog",
    "mm_lifelong",
    "nextqa",
)
"""Modules of this package, in the order of the list; each has ``SOURCES``."""


@cache
def sources() -> tuple[DatasetSource, ...]:
    """Every data set that Homer can read."""
    found = (import_module(f"evals.datasets.{name}") for name in MODULES)
    return tuple(one for module in found for one in module.SOURCES)


def source(name: str) -> DatasetSource:
    """The data set of this name.

    Raises:
        NotFound: there is none; says which there are.
    """
    for one in sources():
        if one.name == name:
            return one
    known = ", ".join(one.name for one in sources())
    raise NotFound(f"there is no data set {name!r}: there are {known}")


def read(name: str, folder: Path) -> Dataset:
    """The data set ``name`` as it lies in ``folder``.

    Raises:
        NotFound: there is no data set of this name.
        InputError: a file is missing or is not what the authors publish; says which and where.
    """
    asked = source(name)
    if not folder.exists():
        raise InputError(f"there is no folder {folder}. {asked.title}: {asked.where}")
    return asked.read(folder)
