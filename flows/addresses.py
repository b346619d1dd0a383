"""Videos at addresses that a user names: fetched into the data directory, like uploads."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from domain.base import Frozen
from domain.errors import HomerError, InputError, SetupError
from domain.words import marked
from flows.http_file import HttpFile, IsPage
from flows.schedules.fetching import hosts_allowed_for, video_fetcher
from flows.uploads import move_upload
from models.keys_and_packages import (
    is_readable,
    redact,
    redacted_url,
    secrets_of_url,
    without_login,
)
from perception.source import find_media
from store.files import file_lock, make_private, try_file_lock
from store.home import Home
from store.progress import Progress

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
