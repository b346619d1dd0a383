"""Fetching videos from addresses, with yt-dlp where the user installed it, and each only once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any, Protocol

from domain.errors import InputError, SetupError
from models.extras import Extra
from models.secrets import hidden, secrets_in, shown_url
from store.database import Store
from store.private import make_private
from store.queries.taken import take, taken_of

YT_DLP = Extra(("yt_dlp",), ("yt-dlp",), "fetch")
ANSWER_S = 30


class Known(Protocol):
    """What was fetched already, by the names that the fetcher gives; as yt-dlp asks for it."""

    def got(self, path: Path) -> None:
        """A file of it lies there whole, and is to be watched."""

    def __contains__(self, name: object) -> bool:
        """Whether it was."""

    def add(self, name: str) -> None:
        """It was fetched now."""


class Fetcher(Protocol):
    """Gets what is at an address into a folder."""

    def __call__(self, url: str, folder: Path, most: int, known: Known) -> Fetched:
        """At most ``most`` videos that were not known; one that cannot be had stops no other."""


@dataclass(frozen=True)
class Fetched:
    """What came of it: new files, and the addresses of which nothing could be had, with why."""

    files: tuple[Path, ...] = ()
    faults: tuple[str, ...] = ()

    def __add__(self, other: Fetched) -> Fetched:
        """Both together."""
        return Fetched(self.files + other.files, self.faults + other.faults)


class Archive:
    """What was fetched into a library, under digests."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __contains__(self, name: object) -> bool:
        key = _key(str(name))
        with self._store.begin() as session:
            return key in taken_of(session, [key])

    def add(self, name: str) -> None:
        """It was fetched now."""
        with self._store.begin() as session:
            take(session, _key(name))

    def got(self, path: Path) -> None:
        """A file lies there whole; noted before its video is, so that a kill loses neither."""
        with self._store.begin() as session:
            take(session, _file_key(path))

    def brought(self, paths: Iterable[Path]) -> set[Path]:
        """Those files that were fetched, by this run or an earlier one."""
        keys = {_file_key(path): path for path in paths}
        with self._store.begin() as session:
            return {keys[key] for key in taken_of(session, keys)}


def fetch_all(store: Store, urls: Iterable[str], folder: Path, most: int, get: Fetcher) -> Fetched:
    """Fetch what is new at each address; one that cannot be had stops no other.

    Args:
        store: knows what was fetched.
        urls: videos, feeds or playlists.
        folder: where files are put.
        most: videos of an address.
        get: does it.

    Raises:
        InputError: the folder cannot be made.
    """
    try:
        if not folder.is_dir():
            make_private(folder)
    except OSError as error:
        raise InputError(f"{folder} cannot be made ({error.strerror})") from error
    known = Archive(store)
    return reduce(add, (get(url, folder, most, known) for url in urls), Fetched())


def fetcher() -> Fetcher:
    """What fetches.

    Raises:
        SetupError: yt-dlp is not installed; says how to get it.
    """
    if not YT_DLP.installed:
        raise SetupError(f"fetching needs yt-dlp: {YT_DLP.hint}")
    return _with_yt_dlp


def _with_yt_dlp(url: str, folder: Path, most: int, known: Known) -> Fetched:
    from yt_dlp import YoutubeDL
    from yt_dlp.utils import YoutubeDLError

    got, faults = list[Path](), _Faults(url)

    class Loader(YoutubeDL):  # type: ignore[misc] # it has no types
        def process_ie_result(self, ie_result: Any, *args: Any, **more: Any) -> Any:
            faults.look(ie_result)
            return super().process_ie_result(ie_result, *args, **more)

    def brought(path: str) -> None:
        known.got(Path(path))
        got.append(Path(path))

    try:
        with Loader(_options(folder, most, known, faults)) as loader:
            loader.add_post_hook(brought)
            loader.extract_info(url)
    except YoutubeDLError as error:  # What is no fault of one entry.
        faults.error(str(error))
    return Fetched(tuple(got), tuple(faults.told))


class _Faults:
    """Hears what yt-dlp says, and notes of which entry it says that it cannot be had."""

    def __init__(self, url: str) -> None:
        self._url = self._entry = url
        self.told: list[str] = []

    def look(self, info: Mapping[str, Any]) -> None:
        """yt-dlp turns to an entry; what it only knows from a list names the list as its page."""
        listed = str(info.get("_type")).startswith("url")
        self._entry = str(info.get("url" if listed else "webpage_url") or self._url)

    def error(self, text: str) -> None:
        """The entry that is at hand cannot be had."""
        secrets = (*secrets_in(self._url), *secrets_in(self._entry))
        why = hidden(text.removeprefix("ERROR: "), secrets)
        self.told.append(f"{shown_url(self._entry)} cannot be fetched: {why}")

    def debug(self, text: str) -> None:
        """How it goes is told nobody."""

    info = warning = debug


def _options(folder: Path, most: int, known: Known, faults: _Faults) -> dict[str, Any]:
    """One file a video, without what needs programs of others; nothing of the user's is read."""
    return {
        "logger": faults,
        "color": "never",
        "paths": {"home": str(folder)},
        "outtmpl": "%(title).80B [%(id).40B].%(ext)s",
        "windowsfilenames": True,
        "format": "best/bestvideo/bestaudio",
        "download_archive": known,
        "playlistend": most,
        "ignoreerrors": True,
        "quiet": True,
        "no_warnings": True,
        "noprogress": True,
        "cachedir": False,
        "socket_timeout": ANSWER_S,
        "retries": 3,
    }


def _key(name: str) -> str:
    return hashlib.sha256(f"fetched\0{name}".encode()).hexdigest()


def _file_key(path: Path) -> str:
    told = f"brought\0{path.absolute()}"
    return hashlib.sha256(told.encode(errors="surrogateescape")).hexdigest()
