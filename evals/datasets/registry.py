"""The data sets by name; a reader's module is loaded when its data set is read."""

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
    "egomem_reason",
    "hippovlog",
    "mm_lifelong",
    "nextqa",
)
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
    return dataset_source.read(folder)
