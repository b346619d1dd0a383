"""Videos at addresses that a user names: fetched into the data directory, like uploads.

What a broken connection left of a file is continued.
"""

from __future__ import annotations

import errno
import hashlib
import json
import mimetypes
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from email.message import Message
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import unquote, urlsplit

from pydantic import ValidationError

from domain.base import Frozen
from domain.errors import HomerError, InputError, SetupError
from domain.words import marked
from flows.schedules.fetching import (
    ANSWER_S,
    LONGEST_S,
    MOST_BYTES,
    hosts_allowed_for,
    video_fetcher,
)
from flows.uploads import move_upload, safe_name
from models.keys_and_packages import (
    is_readable,
    redact,
    redacted_url,
    secrets_of_url,
    without_login,
)
from perception.allowed_hosts import AllowedHosts
from perception.http_source import request_file
from perception.source import SUFFIXES, find_media
from store.files import file_lock, make_private, open_private, try_file_lock
from store.home import Home
from store.progress import Megabytes, Progress

LOCK, RECORD = "lock", "record.json"
KEPT_S = 7 * 86_400
"""Seconds for which parts of an address that failed are kept, for another try to continue."""
_ADDRESS = re.compile(r"https?://\S+", re.IGNORECASE)


@dataclass(frozen=True)
class Fetched:
    """What came of an address: files, or the error."""

    url: str
    files: tuple[Path, ...] = ()
    error: HomerError | None = None

    @property
    def shown_url(self) -> str:
        """The address without what may be secret in it."""
        return redacted_url(self.url)


class FetchRecord(Frozen):
    """The files that an address gave, so that they are not fetched twice."""

    files: tuple[Path, ...]


def is_address(source: str) -> bool:
    """Tell whether a source is an http or https address."""
    return _ADDRESS.fullmatch(source.strip()) is not None and is_readable(source)


def fetch_address(
    home: Home, url: str, *, public_only: bool = False, progress: Progress | None = None
) -> Fetched:
    """Fetch the video at an address; what was fetched before and is still there is taken again.

    A file is fetched directly. Of a page yt-dlp fetches the first video, if it is installed. Both
    may lead to public hosts and, unless ``public_only``, to the host of the address.

    Args:
        home: the data directory, which receives the file among its uploads.
        url: an http or https address.
        public_only: refuse an address of a private host, too.
        progress: receives megabytes of a file.
    """
    for folder in home.fetching.glob("*"):
        _delete_parts(folder, time.time() - KEPT_S)
    folder = _folder(home, url)
    try:
        make_private(folder)
        with file_lock(folder / LOCK):
            known = _recorded(folder)
            files = known or tuple(_fetch(home, url, folder, public_only, progress))
            if not known:
                (folder / RECORD).write_text(FetchRecord(files=files).model_dump_json())
        return Fetched(url, files)
    except OSError as error:
        why = error.strerror or str(error)
        return Fetched(url, error=InputError(_failure(url, folder, why)))
    except SetupError as error:
        return Fetched(url, error=SetupError(_failure(url, folder, str(error))))
    except InputError as error:
        return Fetched(url, error=InputError(_failure(url, folder, str(error))))


def find_files(
    home: Home,
    sources: Sequence[str],
    *,
    public_only: bool,
    progress: Progress,
    warn: Callable[[str], None],
) -> tuple[list[Path], list[Fetched]]:
    """Return the files that sources name, and the addresses that failed.

    Args:
        home: the data directory, which receives what is fetched; made where there is an address.
        sources: files, folders and addresses.
        public_only: refuse an address of a private host, too.
        progress: receives megabytes of a file.
        warn: receives why an address failed, and what is left out of a folder.

    Raises:
        InputError: a file or folder does not exist, or the folder has no media.
        HomerError: the only source is an address that failed.
    """
    files = find_media((Path(source) for source in sources if not is_address(source)), warn)
    failed: list[Fetched] = []
    for url in filter(is_address, sources):
        fetched = fetch_address(home.make(), url, public_only=public_only, progress=progress)
        files += fetched.files
        if fetched.error is None:
            continue
        if len(sources) == 1:
            raise fetched.error
        warn(f"homer: {fetched.error}")
        failed.append(fetched)
    return list(dict.fromkeys(files)), failed


def _failure(url: str, folder: Path, why: str) -> str:
    """Return why an address failed, and what is kept of it."""
    kept = sum(part.stat().st_size for part in _parts(folder))
    address, reason = redacted_url(url), redact(why, secrets_of_url(url))
    if not kept:
        return marked(f"{address} cannot be fetched: {reason}")
    return marked(
        f"{address} cannot be fetched: {reason}; {kept / 1e6:.1f} MB are kept for a week, and the "
        "next try continues there"
    )


def _parts(folder: Path) -> list[Path]:
    """Return the files in the folder of an address that belong to an unfinished one."""
    return [path for path in folder.glob("*") if path.name not in (LOCK, RECORD) and path.is_file()]


def delete_parts(home: Home, urls: Iterable[str]) -> None:
    """Delete what is kept of addresses that failed."""
    for url in urls:
        _delete_parts(_folder(home, url), time.time())


def _delete_parts(folder: Path, before: float) -> None:
    """Delete the parts that were written before a moment, unless the address is fetched now."""
    if not _parts(folder):
        return
    with suppress(OSError), try_file_lock(folder / LOCK) as free:
        for part in _parts(folder) if free else ():
            if part.stat().st_mtime <= before:
                part.unlink()


def fetched_files(home: Home, url: str) -> tuple[Path, ...]:
    """Return the files that an address gave, if all are still there."""
    return _recorded(_folder(home, url))


def forget_fetched(home: Home, files: Iterable[Path]) -> None:
    """Delete the records of addresses that gave one of these files."""
    gone = {str(file) for file in files}
    for record in home.fetching.glob(f"*/{RECORD}"):
        with suppress(OSError, ValidationError):
            known = FetchRecord.model_validate_json(record.read_text())
            if gone.intersection(map(str, known.files)):
                record.unlink()


def _folder(home: Home, url: str) -> Path:
    return home.fetching / hashlib.sha256(without_login(url).encode()).hexdigest()[:16]


def _recorded(folder: Path) -> tuple[Path, ...]:
    """Return the files of an earlier run, if all are still there."""
    try:
        record = FetchRecord.model_validate_json((folder / RECORD).read_text())
    except (OSError, ValidationError):
        return ()
    return record.files if all(file.is_file() for file in record.files) else ()


def _fetch(
    home: Home, url: str, folder: Path, public_only: bool, progress: Progress | None
) -> Iterator[Path]:
    allowed = hosts_allowed_for(url, public_only=public_only)
    http_file = HttpFile(url, folder, allowed, progress)
    try:
        file, name = http_file.fetch()
    except IsPage as page:
        # The first video of the page.
        try:
            fetcher = video_fetcher()
        except SetupError as error:
            raise SetupError(f"{page}; for pages, {error}") from error
        # Nothing of it was fetched before: what is still there was found by the record.
        result = fetcher(url, folder, 1, None, allowed)
        if not result.files:
            reason = "; ".join(
                fault.partition(" cannot be fetched: ")[2] for fault in result.faults
            )
            raise InputError(reason or marked("there is no video on that page")) from page
        for one in result.files:
            yield move_upload(home, one.name, one)
        return
    try:
        yield move_upload(home, name, file)
    finally:
        http_file.discard()


# Fetching one media file over HTTP.


TRIES = 5
"""How often a broken connection is made anew in one run."""
WAIT_S = 1.0
"""Seconds before that."""
CHUNK = 1 << 18

PAGES = frozenset(
    {
        *("text/html", "application/xhtml+xml", "text/xml", "application/xml"),
        *("application/rss+xml", "application/atom+xml"),
        *("application/vnd.apple.mpegurl", "application/x-mpegurl"),
        *("audio/mpegurl", "audio/x-mpegurl", "application/dash+xml"),
    }
)
"""Content types of what names a video and is none."""

_FILES = frozenset(
    {
        *("application/octet-stream", "binary/octet-stream", "application/ogg"),
        *("application/mp4", "application/mxf", "application/x-matroska", "image/gif"),
    }
)
"""Content types of video and audio besides ``video/*`` and ``audio/*``."""


class IsPage(InputError):
    """What lies at an address is a page, a feed or a playlist, and no file."""


class Partial(Frozen):
    """What is known of a file of which a part was fetched: ``total`` in bytes, None if not said."""

    name: str
    validator: str = ""
    total: int | None = None


class HttpFile:
    """A file at an address, fetched into ``folder``.

    Args:
        url: an http or https address.
        folder: an existing folder of this address alone; it keeps the part of an unfinished file.
        allowed: where the address may lead to.
    """

    def __init__(
        self, url: str, folder: Path, allowed: AllowedHosts, progress: Progress | None = None
    ) -> None:
        self._url, self._allowed, self._progress = url, allowed, progress
        self._part, self._about = folder / "file.part", folder / "file.json"
        self._deadline = time.monotonic() + LONGEST_S

    def fetch(self) -> tuple[Path, str]:
        """Return the complete file, under a name of its own, and how it is to be called.

        A part that the server can continue stays when the rest does not come.

        Raises:
            IsPage: it is a page, which another fetcher may read.
            InputError: it is no media, too large, or cannot be had; the message says why.
        """
        try:
            for tries_left in reversed(range(TRIES)):
                try:
                    about = self._continue()
                except HTTPError as error:
                    if error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and tries_left:
                        self.discard()  # The part is not of this file any more.
                        continue
                    raise InputError(f"the server says {error.code} {error.reason}") from error
                except (OSError, HTTPException) as error:
                    if getattr(error, "errno", None) == errno.ENOSPC:
                        self.discard()  # The database needs room too.
                    if not tries_left or not self._part.exists():
                        raise InputError(_reason(error)) from error
                    time.sleep(WAIT_S)
                    continue
                self._about.unlink(missing_ok=True)
                return self._part, about.name
            raise AssertionError("unreachable")
        except InputError:
            if self._known() is None:
                self.discard()
            raise

    def discard(self) -> None:
        self._part.unlink(missing_ok=True)
        self._about.unlink(missing_ok=True)

    def _continue(self) -> Partial:
        """Fetch what is missing.

        Raises:
            OSError: the connection broke; what came stays.
            InputError: it will not come.
        """
        known = self._known()
        start = self._part.stat().st_size if known else 0
        if known and start == known.total:
            return known
        validator = known.validator if known else ""
        with request_file(self._url, self._allowed, ANSWER_S, start, validator) as response:
            # What the head of a response says.
            kind = (
                response.headers.get_content_type() if response.headers.get("Content-Type") else ""
            )
            if kind in PAGES:
                raise IsPage(f"it is a page ({kind}), and no video file")
            if kind and kind not in _FILES and not kind.startswith(("video/", "audio/")):
                raise InputError(f"it is no video or audio file, but {kind}")
            etag = response.headers.get("ETag", "")
            strong = "" if etag.startswith("W/") else etag
            stated = response.headers.get("Content-Range", "").rpartition("/")[2]
            if response.status != HTTPStatus.PARTIAL_CONTENT:
                stated = response.headers.get("Content-Length", "")
            is_said = stated.isascii() and stated.isdigit() and len(stated) < 20
            about = Partial(
                name=_name(self._url, response.headers, kind),
                validator=strong or response.headers.get("Last-Modified", ""),
                total=int(stated) if is_said else None,
            )
            if response.status == HTTPStatus.PARTIAL_CONTENT:
                # Where a part of a file begins; -1 where it does not say.
                first = (
                    response.headers.get("Content-Range", "")
                    .removeprefix("bytes ")
                    .partition("-")[0]
                )
                first_byte = (
                    int(first) if first.isascii() and first.isdigit() and len(first) < 20 else -1
                )
                about = self._continued(about, known, fits=first_byte == start)
            else:
                start = 0
            # Refuse a file of ``total`` bytes; ``start``: how many of them are there already.
            total = about.total
            if (total or 0) > MOST_BYTES:
                raise InputError(f"it is larger than {MOST_BYTES / 10**9:g} GB")
            missing, free = (total or 0) - start, shutil.disk_usage(self._part.parent).free
            if missing > free:
                raise InputError(
                    f"{missing / 1e9:.1f} GB of it are missing, and {free / 1e9:.1f} free"
                )
            with open_private(self._about) as file:
                file.write(about.model_dump_json())
            self._receive(response, start, about.total)
        return about

    def _continued(self, about: Partial, known: Partial | None, *, fits: bool) -> Partial:
        """Return what is known of a file of which a part comes; its size may be from before.

        Raises:
            InputError: it is not the part that was asked for, or of another file.
        """
        total = about.total if known is None or known.total is None else known.total
        if not fits or about.total not in (None, total):
            self.discard()
            raise InputError("the server sends another part of the file than was asked for")
        return about.model_copy(update={"total": total})

    def _known(self) -> Partial | None:
        """Return what is known of a part, if the server can say whether the file has changed."""
        with suppress(OSError, ValidationError, json.JSONDecodeError):
            known = Partial.model_validate_json(self._about.read_text())
            if known.validator and self._part.stat().st_size:
                return known
        return None

    def _receive(self, response: HTTPResponse, start: int, total: int | None) -> None:
        counter = None
        if self._progress is not None and total is not None:
            counter = Megabytes(self._progress, "fetched, MB", total)
            counter.step(start)
        size = start
        with self._part.open("ab" if start else "wb") as file:
            while data := response.read1(CHUNK):
                file.write(data)
                size += len(data)
                if counter:
                    counter.step(len(data))
                self._check(size)
        if total is not None and size < total:
            raise ConnectionError(marked(f"the connection broke after {size} of {total} bytes"))

    def _check(self, size: int) -> None:
        if size > MOST_BYTES:
            self.discard()
            raise InputError(f"it is larger than {MOST_BYTES / 10**9:g} GB")
        if time.monotonic() > self._deadline:
            raise InputError(f"it takes longer than {LONGEST_S / 3600:g} hours")


def _name(url: str, headers: Message, kind: str) -> str:
    """Return a safe file name: as the server calls it, else as the address ends."""
    stated = None
    with suppress(ValueError, LookupError):  # Python decodes it as the server says.
        stated = headers.get_filename()
    name = safe_name(stated or unquote(urlsplit(url).path))
    guessed = mimetypes.guess_extension(kind)
    return name if Path(name).suffix or guessed not in SUFFIXES else f"{name}{guessed}"


def _reason(error: Exception) -> str:
    """Return why an address cannot be had, without the address."""
    if isinstance(error, TimeoutError):
        return marked("the server does not answer in time")
    text = getattr(error, "strerror", None) or str(error)
    return text or marked(f"the connection broke ({type(error).__name__})")
