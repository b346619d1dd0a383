"""Files and folders that only their owner can read, whatever the umask; locks on files, and slots.

A process sets the umask when it starts (``set_private_umask``), which covers what libraries write.
Where the mode matters, 0600 and 0700, it is also given explicitly, since the code may run in
another program.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import secrets
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, TextIO

import psutil

from domain.errors import InputError, SetupError

UMASK = 0o077
OTHERS = 0o077
"""The permission bits of the group and of everybody else."""


MODULE = (sys.executable, "-P", "-m")
"""Runs a module of Homer's in a process of its own, and never one of the working folder."""


def set_private_umask() -> None:
    """Set the umask: new files of this process and its children are private to their owner.

    Nor does a Python process that is started from here on look for modules in its working folder.
    """
    os.umask(UMASK)
    os.environ["PYTHONSAFEPATH"] = "1"


def make_private(folder: Path) -> None:
    """Create a folder with mode 0700 and its missing parents; restrict an existing one.

    A folder of another user is left unchanged, and so is one on a file system without modes.

    Raises:
        OSError: It cannot be created, or is not a folder.
    """
    missing = [folder]
    while not missing[-1].parent.is_dir() and missing[-1].parent != missing[-1]:
        missing.append(missing[-1].parent)
    for path in reversed(missing):
        path.mkdir(mode=0o700, exist_ok=True)
    restrict_folder(folder)


def restrict_folder(folder: Path) -> None:
    """Remove the permissions of group and others from a folder of this user, if possible."""
    status = folder.stat()
    if status.st_mode & OTHERS and status.st_uid == os.geteuid():
        with suppress(OSError):
            folder.chmod(stat.S_IMODE(status.st_mode) & ~OTHERS)


def create_private(path: Path, *, append: bool = False, new: bool = False) -> int:
    """Open a file for writing with mode 0600; an existing file is restricted first.

    Args:
        path: The file; the mode of a pipe or device is not changed.
        new: Reject existing files and links.

    Returns:
        The file descriptor.

    Raises:
        OSError: It cannot be written; or ``new`` and it exists.
    """
    flags = os.O_EXCL if new else os.O_APPEND if append else 0
    # Truncated only once nobody else can read what will be written.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | flags, 0o600)
    try:
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode):
            if status.st_mode & OTHERS and status.st_uid == os.geteuid():
                with suppress(OSError):
                    os.fchmod(descriptor, 0o600)
            if not append:
                os.ftruncate(descriptor, 0)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def open_private(path: Path, *, append: bool = False, errors: str = "strict") -> TextIO:
    """Open a UTF-8 text file for writing that only its owner can read.

    Raises:
        OSError: It cannot be written.
    """
    return os.fdopen(create_private(path, append=append), "w", encoding="utf-8", errors=errors)


def find_exposed(places: Iterable[Path]) -> Iterator[Path]:
    """Yield what group or others can read, write or enter among these places and all in them.

    Links are not followed. What disappears meanwhile is skipped.
    """
    return (Path(folder, name) for folder, name, _ in _exposed_entries(places))


def restrict_exposed(
    places: Iterable[Path], done: Callable[[], None] = lambda: None
) -> tuple[int, tuple[Path, ...]]:
    """Remove the permissions of group and others from everything that ``find_exposed`` finds.

    Links, files with several names (hard links), sockets, and files of other users are left
    unchanged.

    Args:
        done: Called after each file found.
    """
    restricted, failed = 0, list[Path]()
    for folder, name, at in _exposed_entries(places):
        try:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            descriptor = os.open(name, flags, dir_fd=at)
            try:
                status = os.fstat(descriptor)
                if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
                    raise PermissionError(f"{name} has another name elsewhere")
                os.fchmod(descriptor, stat.S_IMODE(status.st_mode) & ~OTHERS)
            finally:
                os.close(descriptor)
            restricted += 1
        except FileNotFoundError:
            pass
        except OSError:
            failed.append(Path(folder, name))
        done()
    return restricted, tuple(failed)


def _exposed_entries(paths: Iterable[Path]) -> Iterator[tuple[str, str, int | None]]:
    """Yield folders and names in them, with the open folder: no link put there later redirects."""
    for path in paths:
        if _is_exposed(str(path), None):
            yield "", str(path), None
        # ``os.fwalk`` skips what disappears within a folder, but not the folder itself.
        with suppress(FileNotFoundError):
            for folder, folders, files, at in os.fwalk(path, follow_symlinks=False):
                names = (name for name in (*folders, *files) if _is_exposed(name, at))
                yield from ((folder, name, at) for name in names)


def _is_exposed(name: str, at: int | None) -> bool:
    try:
        mode = os.stat(name, dir_fd=at, follow_symlinks=False).st_mode
    except OSError:
        return False
    return bool(mode & OTHERS) and not stat.S_ISLNK(mode)


@contextmanager
def atomic_file(out: Path) -> Iterator[Path]:
    """Yield a temporary path that replaces ``out`` when the block succeeds.

    The file is readable by its owner only, whatever the mode of a file that it replaces. Temporary
    files that killed writers of the same file left are removed.

    Raises:
        InputError: ``out`` is a folder, or cannot be written.
    """
    if out.is_dir():
        raise InputError(f"{out} is a folder: name a file to write")
    # The name is random, so that nobody can put a link in its place beforehand.
    temporary = out.with_name(f".{out.name}.{os.getpid()}-{secrets.token_hex(8)}.part")
    try:
        pattern = re.compile(rf"\.{re.escape(out.name)}\.(\d+)(?:-[0-9a-f]+)?\.part")
        for path in out.parent.iterdir():
            match = pattern.fullmatch(path.name)
            if match and not psutil.pid_exists(int(match[1])):
                # In a shared folder it may be another user's.
                with suppress(OSError):
                    path.unlink()
        os.close(create_private(temporary, new=True))
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(out)
    except OSError as exc:
        raise InputError(f"{out} cannot be written: {exc.strerror or exc}") from exc
    finally:
        temporary.unlink(missing_ok=True)


# A lock belongs to an open file and is held by the kernel until its process ends, so a child
# process that inherits the file shares the lock, and other processes can see that there is one. The
# package ``filelock`` offers neither these nor shared locks that the kernel holds.
LOCKS = Path("/proc/locks")
"""File in which Linux lists the held locks."""

_FLOCK = re.compile(r"FLOCK .*:(\d+) ")
"""A line of it: ``12: FLOCK  ADVISORY  WRITE 4711 08:02:1234 0 EOF``, with the inode 1234."""

OpenFile = IO[Any] | int
"""An open file or its descriptor."""


def lock_file(file: OpenFile, *, shared: bool = False) -> None:
    """Lock an open file, and wait for other holders; any number can hold a ``shared`` lock."""
    fcntl.flock(file, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)


def try_lock_file(file: OpenFile, *, shared: bool = False) -> bool:
    """Lock an open file unless another holder prevents it; return whether it is locked."""
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def unlock_file(file: OpenFile) -> None:
    fcntl.flock(file, fcntl.LOCK_UN)


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold the exclusive lock of a path during the block, after a wait for other holders."""
    with path.open("w") as file:
        lock_file(file)
        yield


@contextmanager
def try_file_lock(path: Path) -> Iterator[bool]:
    """Hold the exclusive lock of a path during the block; yield False if another one has it."""
    with path.open("w") as file:
        yield try_lock_file(file)


def is_locked(path: Path) -> bool:
    """Check whether some process holds the lock of a file, without taking it."""
    return bool(locked_paths([path]))


def locked_paths(paths: Iterable[Path]) -> list[Path]:
    """Return those of these files that some process has locked.

    The locks are not taken, so that another process can take them meanwhile. Empty where the system
    does not list locks.
    """
    try:
        locked = frozenset(map(int, _FLOCK.findall(LOCKS.read_text())))
    except OSError:
        locked = frozenset()
    found = []
    for path in paths:
        with suppress(OSError):
            if path.stat().st_ino in locked:
                found.append(path)
    return found


POLL_INTERVAL_S = 0.05


# Each slot is a locked file in the system's temporary folder, so that of a killed process is free
# again at once.
class NoFreeSlot(TimeoutError):
    """No slot was free in time."""


class Slots:
    """The slots of one name.

    Args:
        name: All who use the same name share its slots.
        count: How many there are; None: no limit.
        folder: Where the files are; None: this user's, in the temporary folder.
    """

    def __init__(self, name: str, count: int | None, folder: Path | None = None) -> None:
        self._count = count
        self._folder = folder or Path(tempfile.gettempdir(), f"homer-{os.getuid()}")
        self._name = hashlib.sha256(name.encode()).hexdigest()[:16]

    @contextmanager
    def acquire(
        self, timeout_s: float | None = None, wait: Callable[[float], None] = time.sleep
    ) -> Iterator[None]:
        """Hold a slot, waiting until one is free.

        Args:
            timeout_s: How long to wait; None: for ever.

        Raises:
            NoFreeSlot: None was free in time.
            SetupError: The folder is not this user's own.
        """
        with ExitStack() as held:
            deadline = None if timeout_s is None else time.monotonic() + timeout_s
            while self._count is not None and not self._try_slots(held):
                if deadline is not None and time.monotonic() >= deadline:
                    raise NoFreeSlot
                wait(POLL_INTERVAL_S)
            yield

    def _try_slots(self, held: ExitStack) -> bool:
        # Make the folder; one that others may write to is not trusted.
        folder = self._folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
            raise SetupError(f"{folder} is not yours alone: remove it, or name another in $TMPDIR")
        for number in range(self._count or 0):
            path = self._folder / f"{self._name}-{number}.lock"
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            file = os.fdopen(os.open(path, flags, 0o600), "r+")
            if try_lock_file(file):
                held.enter_context(file)
                return True
            file.close()
        return False
