"""The file formats of a back-up and of ``--keep-undo``: zips of parts, rows and images.

The ``manifest.json`` of a back-up describes its parts, each with its SHA-256. In it are
``tables/SCHEMA.TABLE``, rows as Postgres's COPY writes them, and ``images.tar``, the blobs by
SHA-256. Everything is written and read as a stream: memory does not grow with the library.
"""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import re
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from tarfile import BLOCKSIZE, REGTYPE, TarInfo
from typing import IO, Annotated, Literal, cast
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from pydantic import Field, NonNegativeInt, ValidationError

from domain.base import Frozen
from domain.errors import InputError
from domain.settings import DEFAULT_LIMITS, GB, MB, ImportLimits
from store.files import atomic_file
from store.queries.backup import OWN_TO_LIBRARY
from store.queries.encoders import MOST_NAME, LibraryEncoders
from store.queries.forget import Copy
from store.tables.library import GrantRow, GroupMemberRow
from store.tables.schema import Base

# Untrusted zip files: limits on their size, and damage reported in one line.

ANY_RATIO_BELOW = 64 * MB
"""Bytes up to which any compression ratio is accepted."""

_BROKEN = (BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, LookupError)
_UNEXPECTED = (ValueError, TypeError, NotImplementedError, RuntimeError, OverflowError)


@contextmanager
def open_zip(path: Path, what: str, limits: ImportLimits = DEFAULT_LIMITS) -> Iterator[ZipFile]:
    """Open a zip for reading; ``what`` it should be is for messages.

    Raises:
        InputError: It cannot be read, is not a zip, or unpacks to more than ``limits`` allow.
    """
    with report_damage(path, what):
        archive = ZipFile(path)
    with archive:
        with report_damage(path, what):
            # Reject what would unpack to too much; ``zipfile`` reads no more than the declared
            # sizes.
            members = archive.infolist()
            if len({member.filename for member in members}) < len(members):
                raise ValueError("two members of one name")
            # With other methods zipfile unpacks a whole block of input at once, whatever its size.
            if any(member.compress_type not in (ZIP_STORED, ZIP_DEFLATED) for member in members):
                raise ValueError("a method of compression that Homer does not use")
            total = sum(member.file_size for member in members)
            if total > limits.total_gb * GB:
                raise too_large(
                    path, f"it unpacks to {total / GB:.0f} GB", "total_gb", limits.total_gb
                )
            # Compared to the file itself too: members may overlap or declare a false size.
            sizes = [(member.file_size, member.compress_size) for member in members]
            for unpacked, packed in (*sizes, (total, path.stat().st_size)):
                if unpacked > max(ANY_RATIO_BELOW, limits.ratio * packed):
                    problem = f"{packed / MB:.1f} MB of it unpack to {unpacked / MB:.0f} MB"
                    raise too_large(path, problem, "ratio", limits.ratio)
        yield archive


def too_large(path: Path, what: str, setting: str, limit: int) -> InputError:
    """Return the error for a file that exceeds one of the limits on imports."""
    return InputError(
        f"{path} is refused: {what}, and the limit imports.{setting} is {limit} "
        "(raise it in homer.toml if you trust the file)"
    )


def read_lines(path: Path, file: IO[bytes], limits: ImportLimits) -> Iterator[bytes]:
    """Yield the lines of a member, one at a time, without line ends.

    Raises:
        InputError: One is longer than ``limits`` allow.
    """
    limit = limits.line_mb * MB
    with io.BufferedReader(cast(io.RawIOBase, file), MB) as reader:
        while line := reader.readline(limit + 1):
            if len(line) > limit:
                raise line_too_long(path, limits)
            yield line.removesuffix(b"\n")


def line_too_long(path: Path, limits: ImportLimits) -> InputError:
    return too_large(path, "a line is too long, in MB", "line_mb", limits.line_mb)


def read_member(path: Path, archive: ZipFile, name: str, limits: ImportLimits) -> bytes:
    """Read a member that is an image.

    Raises:
        InputError: It is larger than ``limits`` allow.
    """
    info = archive.getinfo(name)
    if info.file_size > limits.blob_mb * MB:
        problem = f"an image has {info.file_size / MB:.0f} MB"
        raise too_large(path, problem, "blob_mb", limits.blob_mb)
    return archive.read(info)


@contextmanager
def report_damage(path: Path, what: str) -> Iterator[None]:
    """Report errors of reading as damage of the file.

    Raises:
        InputError: There was one.
    """
    try:
        yield
    except (*_BROKEN, *_UNEXPECTED) as exc:
        raise InputError(f"{path} is no {what} of Homer's, or is torn or altered") from exc
    except OSError as exc:
        raise InputError(f"{path} cannot be read: {exc.strerror or exc}") from exc


KIND = "back-up"
MANIFEST_MEMBER = "manifest.json"
IMAGES_MEMBER = "images.tar"
BLOCK = 1 << 20
MANIFEST_LIMIT = 16 << 20
# The highest id accepted, which leaves enough for later rows.
HIGHEST_ID = 1 << 53

_NAME = r"^[a-z_][a-z0-9_]{0,62}$"
_SHA = r"^[0-9a-f]{64}$"
_SHA_NAME = re.compile(_SHA)


_EncoderName = Annotated[str, Field(max_length=MOST_NAME)] | None


class BackupPart(Frozen):
    """A member of the file: its name, its size in bytes and its SHA-256."""

    name: str
    size: NonNegativeInt
    sha256: str = Field(pattern=_SHA)


class TablePart(Frozen):
    """The rows of a table; ``counters`` are the last ids given."""

    table: str = Field(pattern=_NAME)
    columns: tuple[str, ...]
    counters: dict[str, Annotated[int, Field(ge=0, le=HIGHEST_ID)]]
    rows: NonNegativeInt
    part: BackupPart


RIGHTS_TABLES = (GrantRow.__tablename__, GroupMemberRow.__tablename__)
"""Who may see what, and who belongs to groups."""


class Manifest(Frozen):
    """The contents of a back-up. ``missing``: blobs that were missing or damaged at that time."""

    homer_backup: Literal[1] = 1
    revision: str = Field(pattern=r"^\d{4}_[0-9a-f]{8}$", description="of the schema")
    library: str = Field(pattern=r"^[0-9a-f]{32}$")
    encoders: tuple[_EncoderName, _EncoderName] = (None, None)
    made_at: str
    tables: tuple[TablePart, ...]
    blobs: NonNegativeInt
    images: BackupPart
    missing: tuple[str, ...] = ()

    def rows(self, table: str) -> int:
        """Return the number of rows of one of Homer's tables."""
        return sum(part.rows for part in self.tables if part.table == table)

    @property
    def rights(self) -> int:
        """How many rights and members of groups are in it."""
        return sum(map(self.rows, RIGHTS_TABLES))

    def parts(self) -> list[BackupPart]:
        return [*(part.part for part in self.tables), self.images]


class PartWriter(io.RawIOBase):
    """A writer for one part of the file; counts bytes and line ends."""

    def __init__(self, name: str, file: IO[bytes]) -> None:
        self._name, self._file = name, file
        self._sha, self._size, self.lines = hashlib.sha256(), 0, 0

    def writable(self) -> bool:
        """Return True, as ``io`` requires of a writer."""
        return True

    def write(self, data: bytes | bytearray | memoryview) -> int:  # type: ignore[override]
        """Append bytes; return their number."""
        block = bytes(data)
        self._sha.update(block)
        self._size += len(block)
        self.lines += block.count(b"\n")
        self._file.write(block)
        return len(block)

    def manifest_entry(self) -> BackupPart:
        return BackupPart(name=self._name, size=self._size, sha256=self._sha.hexdigest())


class ArchiveWriter:
    """Writes the parts one after the other, and the manifest last."""

    def __init__(self, archive: ZipFile) -> None:
        self._zip = archive

    @contextmanager
    def part(self, name: str, *, packed: bool = True) -> Iterator[PartWriter]:
        """Open a new part; ``packed`` compresses it."""
        info = ZipInfo(name)
        info.compress_type = ZIP_DEFLATED if packed else ZIP_STORED
        info.external_attr = 0o600 << 16
        with self._zip.open(info, "w", force_zip64=True) as file:
            yield PartWriter(name, file)

    def close(self, manifest: Manifest) -> None:
        text = json.dumps(manifest.model_dump(mode="json"), indent=1, ensure_ascii=False)
        with self.part(MANIFEST_MEMBER) as file:
            file.write(text.encode())


@contextmanager
def create_archive(out: Path) -> Iterator[ArchiveWriter]:
    """Create a back-up file, atomically: it is complete or absent.

    Raises:
        InputError: The file exists already, or cannot be written.
    """
    if out.exists():
        raise InputError(f"{out} is there already: name a new file")
    with atomic_file(out) as temporary, ZipFile(temporary, "w", compresslevel=1) as archive:
        yield ArchiveWriter(archive)


class BackupArchive:
    """A reader of a back-up. The file is untrusted: only parts named in the manifest are read."""

    def __init__(self, path: Path, archive: ZipFile, limits: ImportLimits = DEFAULT_LIMITS) -> None:
        self._path, self._zip, self._limits = path, archive, limits
        info = self._zip.getinfo(MANIFEST_MEMBER)
        if info.file_size > MANIFEST_LIMIT:
            raise ValueError("a manifest of that size")
        try:
            self.manifest = Manifest.model_validate_json(self._zip.read(info))
        except ValidationError as exc:
            raise InputError(
                f"{self._path} is no back-up that this Homer knows: a newer Homer made it, or it "
                "is altered"
            ) from exc

    def verify(self, step: Callable[[int], None]) -> None:
        """Verify the checksum of every part; ``step`` is called with the bytes read.

        Raises:
            InputError: The file is damaged or altered, or exceeds a limit.
        """
        with report_damage(self._path, KIND):
            names = [MANIFEST_MEMBER, *(part.name for part in self.manifest.parts())]
            if sorted(names) != sorted(self._zip.namelist()):
                raise ValueError("other members than the manifest says")
            for part in self.manifest.parts():
                sha, size = hashlib.sha256(), 0
                for block in self.blocks(part):
                    sha.update(block)
                    size += len(block)
                    if size > part.size:
                        break
                    step(len(block))
                if (size, sha.hexdigest()) != (part.size, part.sha256):
                    raise ValueError(f"{part.name} is not what it was")

    def rows(self, part: BackupPart) -> Iterator[bytes]:
        """Yield the rows of a part in blocks of at most ``BLOCK`` bytes.

        Raises:
            InputError: A row exceeds the limits; Postgres holds each row in memory.
        """
        line_length, limit = 0, self._limits.line_mb * MB
        for block in self.blocks(part):
            line_rest, _end, _more = block.partition(b"\n")
            if line_length + len(line_rest) > limit:
                raise line_too_long(self._path, self._limits)
            line_length = (
                len(block) - block.rfind(b"\n") - 1 if b"\n" in block else line_length + len(block)
            )
            yield block

    def blocks(self, part: BackupPart) -> Iterator[bytes]:
        """Yield the bytes of a part, at most ``BLOCK`` at a time."""
        with report_damage(self._path, KIND), self._zip.open(part.name) as file:
            while block := file.read(BLOCK):
                yield block

    def images(self) -> Iterator[tuple[str, bytes]]:
        """Yield the blobs with their SHA-256, one at a time.

        Raises:
            InputError: A blob does not match its name, or is too large.
        """
        with report_damage(self._path, KIND), self._zip.open(self.manifest.images.name) as file:
            yield from read_images(file, self._check_image)

    def _check_image(self, size: int) -> None:
        if size > self._limits.blob_mb * MB:
            problem = f"an image has {size / MB:.0f} MB"
            raise too_large(self._path, problem, "blob_mb", self._limits.blob_mb)


@contextmanager
def open_archive(path: Path, limits: ImportLimits = DEFAULT_LIMITS) -> Iterator[BackupArchive]:
    """Open a back-up file for reading.

    Raises:
        InputError: It cannot be read, is not a back-up, is damaged, or exceeds a limit.
    """
    with open_zip(path, KIND, limits) as file:
        with report_damage(path, KIND):
            archive = BackupArchive(path, file, limits)
        yield archive


def write_images(file: PartWriter, images: Iterable[tuple[str, bytes]]) -> None:
    """Write blobs as a tar stream."""
    with tarfile.open(fileobj=file, mode="w|") as tar:
        for sha, data in images:
            info = tarfile.TarInfo(sha)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
            tar.members = []  # type: ignore[attr-defined] # otherwise it grows with every member


def read_images(
    file: IO[bytes], check_size: Callable[[int], object] | None = None
) -> Iterator[tuple[str, bytes]]:
    """Yield the blobs of a tar stream; ``check_size`` raises if one is too large to be read.

    Only plain files, and without ``tarfile``, which reads whatever size an extended header names
    into memory and follows links.

    Raises:
        ValueError: A member is not a blob, or does not match its name.
        EOFError: The stream ends early.
    """
    while any(head := _read_exactly(file, BLOCKSIZE)):
        info = TarInfo.frombuf(head, "ascii", "strict")
        if info.type != REGTYPE or not _SHA_NAME.fullmatch(info.name) or info.size < 0:
            raise ValueError("a member that is no image")
        if check_size is not None:
            check_size(info.size)
        data = _read_exactly(file, info.size)
        _read_exactly(file, -info.size % BLOCKSIZE)
        if hashlib.sha256(data).hexdigest() != info.name:
            raise ValueError(f"{info.name} is not what it was")
        yield info.name, data


def _read_exactly(file: IO[bytes], size: int) -> bytes:
    data = file.read(size)
    if len(data) < size:
        raise EOFError("the images end too soon")
    return data


VERSION = 1
_OF_THE_LIBRARY = {
    *("audit", "library", "taken", "skills", "saved_searches", "enforced_rights", "group_members"),
    *OWN_TO_LIBRARY,
}
_TABLES = Base.metadata.tables.keys() - _OF_THE_LIBRARY
BLOBS = "blobs/"
UNDO_KIND = "file of --keep-undo"


@dataclass(frozen=True)
class ForgottenFile:
    """The rows that were deleted with a person, the time, and the images by SHA-256.

    ``encoders`` made the vectors of the rows.
    """

    video: str
    library: str
    encoders: LibraryEncoders
    at: datetime
    rows: tuple[Copy, ...]
    blobs: Mapping[str, bytes]


def write_forgotten_file(out: Path, forgotten: ForgottenFile) -> None:
    """Write the deleted rows and images to ``out``, atomically.

    Raises:
        InputError: The file exists already, or cannot be written.
    """
    if out.exists():
        raise InputError(f"{out} is there already: name a new file for --keep-undo")
    with atomic_file(out) as temporary, ZipFile(temporary, "w", ZIP_DEFLATED) as archive:
        head: dict[str, object] = {
            "keepsake": VERSION,
            "video": forgotten.video,
            "library": forgotten.library,
            "encoders": forgotten.encoders,
        }
        head["at"] = forgotten.at.isoformat()
        rows = [json.dumps([copy.table, copy.row], ensure_ascii=False) for copy in forgotten.rows]
        archive.writestr("rows.jsonl", "\n".join([json.dumps(head), *rows]))
        for sha, data in sorted(forgotten.blobs.items()):
            archive.writestr(f"blobs/{sha}", data)


def read_forgotten_file(path: Path, limits: ImportLimits = DEFAULT_LIMITS) -> ForgottenFile:
    """Read a file written by ``write_forgotten_file``.

    Raises:
        InputError: The file cannot be read, is of another kind or altered, or exceeds a limit.
    """
    with open_zip(path, UNDO_KIND, limits) as archive, report_damage(path, UNDO_KIND):
        names = [name for name in archive.namelist() if name.startswith(BLOBS)]
        blobs = {
            name.removeprefix(BLOBS): read_member(path, archive, name, limits) for name in names
        }
        if any(hashlib.sha256(data).hexdigest() != sha for sha, data in blobs.items()):
            raise ValueError("an image that is not what it was")
        with archive.open("rows.jsonl") as file:
            lines = read_lines(path, file, limits)
            head = json.loads(next(lines, b""))
            if head["keepsake"] != VERSION:
                raise ValueError("of another version")
            rows = tuple(_row(line) for line in islice(lines, limits.rows + 1))
            if len(rows) > limits.rows:
                raise too_large(path, "it has too many rows", "rows", limits.rows)
        at = datetime.fromisoformat(head["at"])
        encoders = LibraryEncoders.parse(head["encoders"])
        return ForgottenFile(head["video"], head["library"], encoders, at, rows, blobs)


def _row(line: bytes) -> Copy:
    """Parse a row; reject tables that forgetting a person never changes."""
    table, text = json.loads(line)
    json.loads(text)  # A row that is no JSON is refused here, not by the database.
    if table not in _TABLES:
        raise ValueError("a table that nothing is forgotten of")
    return Copy(table, text)
