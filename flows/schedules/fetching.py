"""Fetching videos from addresses, with yt-dlp where the user installed it, and each only once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from domain.errors import InputError, SetupError
from models.extras import Extra
from models.secrets import hidden, secrets_in, shown_url
from store.database import Store
from store.queries.taken import take, taken_of

YT_DLP = Extra(("yt_dlp",), ("yt-dlp",), "fetch")
ANSWER_S = 30


class Known(Protocol):
    """What was fetched already, by the names that the fetcher gives; as yt-dlp asks for it."""

    def __contains__(self, name: object) -> bool:
        """Whether it was."""

    def add(self, name: str) -> None:
        """It was fetched now."""


class Fetcher(Protocol):
    """Gets what is at an address into a folder."""

    def __call__(self, url: str, folder: Path, most: int, known: Known) -> list[Path]:
        """The files of at most ``most`` videos that were not known.

        Raises:
            InputError: nothing can be had there; says why.
        """


@dataclass(frozen=True)
class Fetched:
    """What came of it: new files, and the addresses of which nothing could be had, with why."""

    files: tuple[Path, ...]
    faults: tuple[str, ...]


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
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder} cannot be made ({error.strerror})") from error
    files, faults = list[Path](), list[str]()
    for url in urls:
        try:
            files += get(url, folder, most, Archive(store))
        except InputError as error:
            faults.append(str(error))
    return Fetched(tuple(files), tuple(faults))


def fetcher() -> Fetcher:
    """What fetches.

    Raises:
        SetupError: yt-dlp is not installed; says how to get it.
    """
    if not YT_DLP.installed:
        raise SetupError(f"fetching needs yt-dlp: {YT_DLP.hint}")
    return _with_yt_dlp


def _with_yt_dlp(url: str, folder: Path, most: int, known: Known) -> list[Path]:
    from yt_dlp import YoutubeDL
    from yt_dlp.utils import YoutubeDLError

    got: list[Path] = []

    try:
        with YoutubeDL(_options(folder, most, known)) as loader:
            loader.add_post_hook(lambda path: got.append(Path(path)))
            loader.extract_info(url)
    except YoutubeDLError as error:
        why = hidden(str(error), secrets_in(url))
        raise InputError(f"{shown_url(url)} cannot be fetched: {why}") from error
    return got


def _options(folder: Path, most: int, known: Known) -> dict[str, Any]:
    """One file a video, without what needs programs of others; nothing of the user's is read."""
    return {
        "paths": {"home": str(folder)},
        "outtmpl": "%(title).80B [%(id).40B].%(ext)s",
        "windowsfilenames": True,
        "format": "best/bestvideo/bestaudio",
        "download_archive": known,
        "playlistend": most,
        "ignoreerrors": False,
        "quiet": True,
        "no_warnings": True,
        "noprogress": True,
        "cachedir": False,
        "socket_timeout": ANSWER_S,
        "retries": 3,
    }


def _key(name: str) -> str:
    return hashlib.sha256(f"fetched\0{name}".encode()).hexdigest()
