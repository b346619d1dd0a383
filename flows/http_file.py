"""Fetching one media file over HTTP; what a broken connection left is continued."""

from __future__ import annotations

import errno
import json
import mimetypes
import shutil
import time
from contextlib import suppress
from email.message import Message
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import unquote, urlsplit

from pydantic import ValidationError

from domain.base import Frozen
from domain.errors import InputError
from domain.words import marked
from flows.schedules.fetching import ANSWER_S, LONGEST_S, MOST_BYTES
from flows.uploads import safe_name
from perception.allowed_hosts import AllowedHosts
from perception.http_source import request_file
from perception.source import SUFFIXES
from store.files import open_private
from store.progress import Megabytes, Progress

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
        """Delete what was fetched of it."""
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
