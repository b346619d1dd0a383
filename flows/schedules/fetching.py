"""Fetching videos from addresses, with yt-dlp where the user installed it, and each only once."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial, reduce
from glob import escape
from operator import add
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit
from urllib.request import getproxies

from domain.errors import InputError, SetupError
from models.extras import Extra
from models.secrets import hidden, secrets_in, shown_url
from perception.allowed_hosts import Reach, only
from store.database import Store
from store.private_files import make_private
from store.queries.schedules import take, taken_of

YT_DLP = Extra(("yt_dlp",), ("yt-dlp",), "fetch")
ANSWER_S = 30
KINDS = ("best", "bestvideo", "bestaudio")
PROTOCOLS = "^(https?|m3u8_native|http_dash_segments)$"
MOST_BYTES = 50 * 10**9
"""Of a video; a larger one is not kept."""
MOST_PAGE = 64 << 20
"""Bytes of a page, a feed or a playlist, which are read into memory."""
LONGEST_S = 12 * 3600.0
"""All videos of an address in one run; what comes slower is given up."""


class Known(Protocol):
    """What was fetched already, by the names that the fetcher gives; as yt-dlp asks for it."""

    def got(self, path: Path) -> None:
        """A file of it lies there whole, and is to be watched."""

    def __contains__(self, name: object) -> bool:
        """Whether it was."""

    def add(self, name: str) -> None:
        """It was fetched now."""


class VideoFetcher(Protocol):
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


class FetchArchive:
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


def fetch_all(
    store: Store, urls: Iterable[str], folder: Path, most: int, get: VideoFetcher
) -> Fetched:
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
    known = FetchArchive(store)
    return reduce(add, (get(url, folder, most, known) for url in urls), Fetched())


def fetcher() -> VideoFetcher:
    """What fetches.

    Raises:
        SetupError: yt-dlp is not installed; says how to get it.
    """
    if not YT_DLP.installed:
        raise SetupError(f"fetching needs yt-dlp: {YT_DLP.hint}")
    return _with_yt_dlp


def _with_yt_dlp(url: str, folder: Path, most: int, known: Known) -> Fetched:
    from yt_dlp import YoutubeDL
    from yt_dlp.utils import DownloadCancelled, DownloadError, YoutubeDLError

    got, faults = list[Path](), _Faults(url)
    limits = _Limits(most, DownloadError, DownloadCancelled)
    reach = Reach(urlsplit(url).hostname or "", *_proxies())

    class Loader(YoutubeDL):  # type: ignore[misc] # it has no types
        def process_ie_result(self, ie_result: Any, *args: Any, **more: Any) -> Any:
            limits.look()
            faults.look(ie_result)
            return super().process_ie_result(ie_result, *args, **more)

        def urlopen(self, req: Any) -> Any:
            limits.in_time()
            reach.check(urlsplit(req if isinstance(req, str) else req.url).hostname or "")
            found = super().urlopen(req)
            found.read = partial(limits.read, found.read)
            return found

        def build_request_director(self, handlers: Any, preferences: Any = None) -> Any:
            # Whatever connects from C is seen by nobody.
            plain = [one for one in handlers if one.RH_NAME != "curl_cffi"]
            return super().build_request_director(plain, preferences)

    def brought(path: str) -> None:
        known.got(Path(path))
        got.append(Path(path))

    try:
        with only(reach), Loader(_options(folder, most, known, faults)) as loader:
            loader.add_post_hook(brought)
            loader.add_progress_hook(limits.progress)
            loader.extract_info(url)
    except (YoutubeDLError, OSError) as error:  # What is no fault of one entry.
        if not limits.full(error):
            faults.error(str(error))
    finally:
        limits.clear()
    return Fetched(tuple(got), tuple(faults.told))


def _proxies() -> list[str]:
    """The hosts of the proxies that the environment names."""
    found = [one if "://" in one else f"//{one}" for one in getproxies().values()]
    return [host for one in found if (host := urlsplit(one).hostname)]


class _Limits:
    """How much may come of an address, and for how long.

    ``entry`` and ``all`` are yt-dlp's errors that give up one entry, and the whole address.
    """

    def __init__(self, most: int, entry: type[Exception], everything: type[Exception]) -> None:
        self._looks = 50 + 20 * most
        self._entry, self._all = entry, everything
        self._until = time.monotonic() + LONGEST_S
        self._gone: list[Path] = []
        self._given_up = False

    def look(self) -> None:
        """An entry is looked at; lists may hold lists, and name each other."""
        self._looks -= 1
        if self._looks < 0:
            self._stop("it lists lists without end")
        self.in_time()

    def in_time(self) -> None:
        """Give up where it takes too long."""
        if time.monotonic() > self._until:
            self._stop(f"it takes longer than {LONGEST_S / 3600:g} hours")

    def _stop(self, why: str) -> None:
        self._given_up = True
        raise self._all(why)

    def full(self, error: Exception) -> bool:
        """Whether an error tells only that enough was fetched."""
        return isinstance(error, self._all) and not self._given_up

    def read(self, plain: Any, amount: int | None = None) -> bytes:
        """A piece of a video; or a page as a whole, where that is not too long."""
        found: bytes = plain(MOST_PAGE + 1 if amount is None else amount)
        if amount is None and len(found) > MOST_PAGE:
            raise self._entry(f"its page is longer than {MOST_PAGE >> 20} MB")
        return found

    def progress(self, told: Mapping[str, Any]) -> None:
        """Something came of a video."""
        if told.get("status") != "downloading":
            return
        self.in_time()
        if (told.get("downloaded_bytes") or 0) > MOST_BYTES:
            self._gone.append(Path(told.get("tmpfilename") or told["filename"]))
            raise self._entry(f"it is larger than {MOST_BYTES / 10**9:g} GB")

    def clear(self) -> None:
        """Remove what came of videos that are too large; of others the next run goes on."""
        for part in self._gone:
            more = part.parent.glob(f"{escape(part.name)}-Frag*")
            for one in (part, part.with_suffix(".ytdl"), *more):
                with suppress(OSError):
                    one.unlink(missing_ok=True)


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
        "format": "/".join(f"{kind}[protocol~='{PROTOCOLS}']" for kind in KINDS),
        "enable_file_urls": False,
        "external_downloader": {"default": "native"},
        "ffmpeg_location": str(folder / ".none" / "ffmpeg"),  # It would connect to anywhere.
        "fixup": "never",
        "concurrent_fragment_downloads": 1,
        "max_filesize": MOST_BYTES,
        "download_archive": known,
        "playlistend": most,
        "max_downloads": most,
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
