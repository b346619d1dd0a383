"""The model files on disk: their state, fetching missing ones, and checking digests.

A model's files lie in ``WEIGHTS/NAME/``. Nothing is loaded whose SHA-256 is not the manifest's, and
no format that can carry code (pickle) is used at all. A folder of their own that users name in a
profile (``models.image_text``) is theirs to trust.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

from domain.errors import SetupError, WeightsMissing
from domain.marked import marked
from models.fetch import CHUNK, FetchProgress, FileFetcher, OnProgress
from models.manifest import ModelWeights, WeightFile, weights_named

SCRATCH = ".pull-"
SCRATCH_KEPT_S = 86_400


class FileState(StrEnum):
    """What is on disk in a model file's place."""

    PRESENT = "present"
    MISSING = "missing"
    WRONG = "wrong"


@dataclass(frozen=True)
class FileStatus:
    """One file of a model in a weights folder."""

    model: str
    file: WeightFile
    path: Path
    state: FileState


@dataclass(frozen=True)
class Pulled:
    """One file after a pull; ``source`` is None where it was on disk already."""

    model: str
    path: Path
    source: str | None


def status(weights: Path, names: Iterable[str]) -> list[FileStatus]:
    """Return the state of every file of the named models in the folder ``weights``.

    Raises:
        NotFound: the manifest has no model of that name.
    """
    return [
        FileStatus(name, file, path, _state(path, file))
        for name in names
        for file, path in _places(weights, weights_named(name))
    ]


def pull(weights: Path, names: Iterable[str], report: OnProgress | None = None) -> list[Pulled]:
    """Fetch what is missing of the named models into ``weights``; files appear whole or not at all.

    Args:
        weights: the weights folder, made if need be.
        names: models of the manifest.
        report: Called for every megabyte, with file and source.

    Raises:
        NotFound: the manifest has no model of that name.
        WeightsMissing: no source has a file; what was fetched before stays.
        SetupError: the folder cannot be made or written.
    """
    wanted = status(weights, names)
    if all(found.state is FileState.PRESENT for found in wanted):
        return [Pulled(found.model, found.path, None) for found in wanted]
    _made(weights)
    _sweep(weights)
    # In the weights folder, so that a finished file can be renamed into its place.
    with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=weights) as scratch:
        fetcher = FileFetcher(Path(scratch), report or _silent)
        return [_pull_file(found, fetcher) for found in wanted]


def verified_folder(weights: Path, name: str) -> Path:
    """Return a model's folder once all its files are checked against the manifest.

    Raises:
        NotFound: the manifest has no model of that name.
        WeightsMissing: a file is missing or is another file; says which, where, and what to do.
    """
    for found in status(weights, [name]):
        if found.state is not FileState.PRESENT:
            file, folder = found.file.path, weights / name
            missing = marked(f"{file} is missing in {folder}")
            wrong = marked(f"{file} is not what it should be in {folder}")
            problem = missing if found.state is FileState.MISSING else wrong
            raise WeightsMissing(
                f"the model {name} cannot be used: {problem}. Run: homer models pull {name}"
            )
    return weights / name


def _places(weights: Path, model: ModelWeights) -> list[tuple[WeightFile, Path]]:
    return [(file, weights / model.name / file.path) for file in model.files]


def _state(path: Path, file: WeightFile) -> FileState:
    try:
        stat = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return FileState.MISSING
    same = stat.st_size == file.size and file_digest(path) == file.sha256
    return FileState.PRESENT if same else FileState.WRONG


def file_digest(path: Path) -> str:
    """Return a file's SHA-256; "" where there is none."""
    try:
        return _digest(path, path.stat().st_mtime_ns)
    except FileNotFoundError:
        return ""


@lru_cache(maxsize=256)
def _digest(path: Path, _mtime_ns: int) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _pull_file(found: FileStatus, fetcher: FileFetcher) -> Pulled:
    if found.state is FileState.PRESENT:
        return Pulled(found.model, found.path, None)
    copy, source = fetcher.fetch(f"{found.model}/{found.file.path}", found.file)
    _made(found.path.parent)
    copy.replace(found.path)
    return Pulled(found.model, found.path, source)


def _sweep(weights: Path) -> None:
    """Remove what killed pulls left behind; a recent one may still run in another process."""
    for scratch in weights.glob(f"{SCRATCH}*"):
        if time.time() - scratch.stat().st_mtime > SCRATCH_KEPT_S:
            shutil.rmtree(scratch, ignore_errors=True)


def _made(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise SetupError(
            f"the folder for model files {folder} cannot be written ({error.strerror}): "
            "set HOMER_WEIGHTS to a folder that you can write"
        ) from error


def _silent(_progress: FetchProgress) -> None:
    """Report no progress."""
