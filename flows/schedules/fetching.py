"""Fetching videos from addresses, each once, with yt-dlp if it is installed."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from glob import escape
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from domain.errors import Busy, InputError, MediaError, SetupError
from domain.watching import Watched
from domain.words import counted
from flows.watching import Listener, watch_files
from flows.workspace import Workspace
from models.keys_and_packages import Extra, redact, redacted_url, secrets_of_url
from perception.allowed_hosts import AllowedHosts, connections_limited_to
from perception.source import media_in, video_id
from store.database import Store
from store.files import make_private
from store.queries.clips import next_clips
from store.queries.rights import deleted_videos
from store.queries.videos import processed_items, record_processed

YT_DLP = Extra(("yt_dlp",), ("yt-dlp",), "fetch")
ANSWER_S = 30
KINDS = ("best", "bestvideo", "bestaudio")
PROTOCOLS = "^(https?|m3u8_native|http_dash_segments)$"
MOST_BYTES = 50 * 10**9
"""Size limit of a video; a larger one is deleted."""
MOST_PAGE = 64 << 20
"""Size limit in bytes of a page, feed or playlist, which is read into memory."""
LONGEST_S = 12 * 3600.0
"""Time limit in seconds for all videos of an address in one run."""


@dataclass(frozen=True)
class FetchResult:
    """The result: new files, and for each address that failed a line with the reason."""

    files: tuple[Path, ...] = ()
    faults: tuple[str, ...] = ()


class FetchArchive:
    """The record of what was fetched into a library, as digests; the interface is yt-dlp's."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __contains__(self, name: object) -> bool:
        key = _key("fetched", name)
        with self._store.begin() as session:
            return key in processed_items(session, [key])

    def add(self, name: str) -> None:
        """Note that it was fetched now."""
        with self._store.begin() as session:
            record_processed(session, _key("fetched", name))

    def got(self, path: Path) -> None:
        """Note that a file is complete, before its video is noted, so that a kill loses neither."""
        with self._store.begin() as session:
            record_processed(session, _key("brought", path.absolute()))

    def already_fetched(self, paths: Iterable[Path]) -> set[Path]:
        """Return the files that were fetched, by this run or an earlier one."""
        keys = {_key("brought", path.absolute()): path for path in paths}
        with self._store.begin() as session:
            return {keys[key] for key in processed_items(session, keys)}


def fetch_all(
    store: Store, urls: Iterable[str], folder: Path, most: int, get: VideoFetcher
) -> FetchResult:
    """Fetch what is new at each address; one that fails does not stop the others.

    Args:
        store: has the record of what was fetched.
        urls: videos, feeds or playlists.
        folder: receives the files.
        most: limit of videos per address.

    Raises:
        InputError: the folder cannot be created.
    """
    make_folder(folder)
    known = FetchArchive(store)
    each = [get(url, folder, most, known, None) for url in urls]
    return FetchResult(
        tuple(file for one in each for file in one.files),
        tuple(fault for one in each for fault in one.faults),
    )


def make_folder(folder: Path) -> None:
    """Make a folder, readable by this user only, or raise an InputError."""
    try:
        if not folder.is_dir():
            make_private(folder)
    except OSError as error:
        raise InputError(f"{folder} cannot be made ({error.strerror})") from error


VideoFetcher = Callable[[str, Path, int, FetchArchive | None, AllowedHosts | None], FetchResult]
"""Fetches the videos of an address into a folder.

That many unknown ones at most; a failed one does not stop the others. Without an archive all are
unknown. The address may lead to the allowed hosts; None: to public ones and its own.
"""


def video_fetcher() -> VideoFetcher:
    """Return the fetcher.

    Raises:
        SetupError: yt-dlp is not installed; the message says how to install it.
    """
    if not YT_DLP.installed:
        raise SetupError(f"fetching needs yt-dlp: {YT_DLP.hint}")
    return _fetch_with_yt_dlp


def _fetch_with_yt_dlp(
    url: str,
    folder: Path,
    most: int,
    known: FetchArchive | None,
    allowed: AllowedHosts | None,
) -> FetchResult:
    # An optional extra.
    from yt_dlp import YoutubeDL
    from yt_dlp.utils import DownloadCancelled, DownloadError, YoutubeDLError

    files, faults = list[Path](), _Faults(url)
    limits = _Limits(most, DownloadError, DownloadCancelled)
    hosts = allowed or hosts_allowed_for(url)

    class Loader(YoutubeDL):  # type: ignore[misc] # it has no types
        def process_ie_result(self, ie_result: Any, *args: Any, **kwargs: Any) -> Any:
            limits.look()
            faults.look(ie_result)
            return super().process_ie_result(ie_result, *args, **kwargs)

        def urlopen(self, req: Any) -> Any:
            limits.in_time()
            hosts.check(urlsplit(req if isinstance(req, str) else req.url).hostname or "")
            response = super().urlopen(req)
            response.read = partial(limits.read, response.read)
            return response

        def build_request_director(self, handlers: Any, preferences: Any = None) -> Any:
            # Connections that are made in C code are not checked.
            plain = [handler for handler in handlers if handler.RH_NAME != "curl_cffi"]
            return super().build_request_director(plain, preferences)

    def note_file(path: str) -> None:
        if known is not None:
            known.got(Path(path))
        files.append(Path(path))

    try:
        with (
            connections_limited_to(hosts),
            Loader(_options(folder, most, known, faults)) as loader,
        ):
            loader.add_post_hook(note_file)
            loader.add_progress_hook(limits.progress)
            loader.extract_info(url)
    except (YoutubeDLError, OSError) as error:  # Not an error of one entry.
        if not limits.full(error):
            faults.error(str(error))
    finally:
        limits.clear()
    return FetchResult(tuple(files), tuple(faults.told))


def hosts_allowed_for(url: str, *, public_only: bool = False) -> AllowedHosts:
    """Return where an address may lead: to public hosts, and unless ``public_only`` to its own."""
    proxies = [proxy if "://" in proxy else f"//{proxy}" for proxy in getproxies().values()]
    own = None if public_only else urlsplit(url).hostname
    return AllowedHosts(own, *filter(None, (urlsplit(proxy).hostname for proxy in proxies)))


class _Limits:
    """Limits of the size, number and duration of what is fetched from an address.

    ``entry`` and ``everything`` are yt-dlp's errors that stop one entry, and the whole address.
    """

    def __init__(self, most: int, entry: type[Exception], everything: type[Exception]) -> None:
        self._entries_left = 50 + 20 * most
        self._entry, self._all = entry, everything
        self._deadline = time.monotonic() + LONGEST_S
        self._too_large: list[Path] = []
        self._stopped = False

    def look(self) -> None:
        """Count an entry; lists may contain lists, and refer to each other."""
        self._entries_left -= 1
        if self._entries_left < 0:
            self._stop("its lists contain lists without end")
        self.in_time()

    def in_time(self) -> None:
        if time.monotonic() > self._deadline:
            self._stop(f"it takes longer than {LONGEST_S / 3600:g} hours")

    def _stop(self, why: str) -> None:
        self._stopped = True
        raise self._all(why)

    def full(self, error: Exception) -> bool:
        """Check whether an error only says that enough was fetched."""
        return isinstance(error, self._all) and not self._stopped

    def read(self, plain: Any, amount: int | None = None) -> bytes:
        """Read a piece of a video; or a whole page, up to its size limit."""
        data: bytes = plain(MOST_PAGE + 1 if amount is None else amount)
        if amount is None and len(data) > MOST_PAGE:
            raise self._entry(f"its page is longer than {MOST_PAGE >> 20} MB")
        return data

    def progress(self, status: Mapping[str, Any]) -> None:
        """Check the size of a video that is being fetched."""
        if status.get("status") != "downloading":
            return
        self.in_time()
        if (status.get("downloaded_bytes") or 0) > MOST_BYTES:
            self._too_large.append(Path(status.get("tmpfilename") or status["filename"]))
            raise self._entry(f"it is larger than {MOST_BYTES / 10**9:g} GB")

    def clear(self) -> None:
        """Delete what was fetched of too large videos; the next run continues the others."""
        for part in self._too_large:
            fragments = part.parent.glob(f"{escape(part.name)}-Frag*")
            for file in (part, part.with_suffix(".ytdl"), *fragments):
                with suppress(OSError):
                    file.unlink(missing_ok=True)


class _Faults:
    """A logger for yt-dlp that collects its errors with the entry they belong to."""

    def __init__(self, url: str) -> None:
        self._url = self._entry = url
        self.told: list[str] = []

    def look(self, info: Mapping[str, Any]) -> None:
        """Note the current entry; one known only from a list has the list as its page."""
        listed = str(info.get("_type")).startswith("url")
        self._entry = str(info.get("url" if listed else "webpage_url") or self._url)

    def error(self, text: str) -> None:
        """Note that the current entry failed."""
        secrets = (*secrets_of_url(self._url), *secrets_of_url(self._entry))
        why = redact(text.removeprefix("ERROR: "), secrets)
        self.told.append(f"{redacted_url(self._entry)} cannot be fetched: {why}")

    def debug(self, text: str) -> None:
        """Ignore it."""

    info = warning = debug


def _options(
    folder: Path, most: int, known: FetchArchive | None, faults: _Faults
) -> dict[str, Any]:
    """Return yt-dlp's options: one file per video, no other programs, no user settings."""
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
        "download_archive": set() if known is None else known,
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


def _key(*parts: object) -> str:
    name = "\0".join(map(str, parts))
    return hashlib.sha256(name.encode(errors="surrogateescape")).hexdigest()


# Watching a folder: each file is watched once, as soon as it stops changing.
#
# A file is recorded by its path, size and time of change. So a changed file is watched again, and
# is another video by its content; a known video under another name is skipped by its content; and a
# file that cannot be watched is reported once.


@dataclass(frozen=True)
class FileStamp:
    """The state of a file: ``size`` in bytes, ``changed`` in nanoseconds of the file system."""

    path: Path
    size: int
    changed: int

    @property
    def key(self) -> str:
        """Return the digest under which the file is recorded, which does not reveal its path."""
        return _key(self.path, self.size, self.changed)


def file_stamp(path: Path) -> FileStamp | None:
    """Return the current state of a file; None if it does not exist or is empty."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return FileStamp(path.absolute(), stat.st_size, stat.st_mtime_ns) if stat.st_size else None


def media_stamps(folder: Path) -> list[FileStamp]:
    """Return the media files of a folder, at any depth, in order.

    Raises:
        InputError: the folder does not exist.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder: make it, or tell the schedule another one")
    return [stand for path in media_in(folder)[0] if (stand := file_stamp(path))]


def unchanged_files(
    files: Sequence[FileStamp], stable_s: float, wait: Callable[[float], None]
) -> list[FileStamp]:
    """Return the files that are unchanged ``stable_s`` seconds later; without any, do not wait."""
    if not files:
        return []
    wait(stable_s)
    return [file for file in files if file_stamp(file.path) == file]


def unrecorded_files(store: Store, files: Sequence[FileStamp]) -> list[FileStamp]:
    """Return the files that are not recorded in their current state."""
    with store.begin() as session:
        recorded = processed_items(session, [file.key for file in files])
    return [file for file in files if file.key not in recorded]


def watch_new_files(
    workspace: Workspace, ready: Iterable[FileStamp], listener: Listener
) -> Iterator[Watched]:
    """Watch files, and record each of them unless a later run may do better.

    A file whose video was deleted is skipped, even at another path: only a person adds it again.
    """
    for file in ready:
        if was_deleted(workspace.store, file.path):
            outcomes = iter([Watched(path=str(file.path))])
        else:
            outcomes = watch_files(workspace, [file.path], listener)
        for outcome in outcomes:
            why = outcome.error or None
            if outcome.failed:
                why = f"{outcome.path}: {counted(outcome.failed, 'clip')} could not be watched"
            with workspace.store.begin() as session:
                # Another run would have the same result.
                if (
                    not next_clips(session, outcome.video)
                    if outcome.video
                    else not isinstance(outcome.failure, Busy)
                ):
                    record_processed(session, file.key, why)
            yield outcome


def was_deleted(store: Store, path: Path) -> bool:
    """Check whether the video of a file was deleted, and not added again, by the audit log."""
    with store.begin() as session:
        deleted = deleted_videos(session)
    try:
        return bool(deleted) and video_id(path) in deleted
    except MediaError:  # Watching it reports what is wrong with it.
        return False
