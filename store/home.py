"""The data directory: everything that Homer stores is in it, files of recaps among it."""

from __future__ import annotations

import grp
import os
import pwd
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from domain.errors import SetupError
from store.files import atomic_file, make_private, restrict_folder

_NAMES = (
    *("postgres", "postgres.new", "blobs", "weights", "logs", "uploads", "run", "prefect", "dask"),
    *("fetched", "fetching", "backups", "alerts", "recaps", ".streamlit"),
    *("homer.toml", "app.password", "links.key"),
)
"""Everything that Homer writes in a data directory, and the settings that it reads there."""


@dataclass(frozen=True, slots=True)
class Home:
    """The paths in a data directory; nothing is created until ``make``."""

    root: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", Path(self.root).expanduser().absolute())

    @classmethod
    def default(cls) -> Home:
        """Return ``$HOMER_HOME``, or the platform's folder for user data.

        Raises:
            SetupError: others may write in it.
        """
        configured = os.environ.get("HOMER_HOME")
        home = (
            cls(Path(configured))
            if configured
            else cls(platformdirs.user_data_path("homer", appauthor=False))
        )
        _refuse_shared(home.root)
        return home

    @property
    def postgres(self) -> Path:
        """The embedded Postgres's data folder."""
        return self.root / "postgres"

    @property
    def blobs(self) -> Path:
        """The content-addressed files."""
        return self.root / "blobs"

    @property
    def weights(self) -> Path:
        """The weights of models: ``$HOMER_WEIGHTS``, or ``weights`` in the data directory."""
        configured = os.environ.get("HOMER_WEIGHTS")
        return Path(configured).expanduser().absolute() if configured else self.root / "weights"

    @property
    def logs(self) -> Path:
        """The logs of the servers that Homer starts."""
        return self.root / "logs"

    @property
    def uploads(self) -> Path:
        """The files that users uploaded to the app."""
        return self.root / "uploads"

    @property
    def fetching(self) -> Path:
        """Parts of files that are being fetched from addresses."""
        return self.root / "fetching"

    @property
    def alerts(self) -> Path:
        """Where the events of alerts are delivered: a file an alert."""
        return self.root / "alerts"

    @property
    def recaps(self) -> Path:
        """The recaps that were written, as Markdown."""
        return self.root / "recaps"

    @property
    def run(self) -> Path:
        """Sockets, locks and process ids."""
        return self.root / "run"

    @property
    def config(self) -> Path:
        """The user's settings file; it may not exist.

        Raises:
            SetupError: others may write in the data directory.
        """
        _refuse_shared(self.root)
        return self.root / "homer.toml"

    @property
    def own(self) -> bool:
        """Whether the data directory belongs to Homer alone.

        It does not if it is the user's home directory or a folder above it: the modes of these are
        not changed.
        """
        with suppress(OSError):
            return not Path.home().is_relative_to(self.root.resolve())
        return True

    def places(self) -> list[Path]:
        """Return what Homer wrote in the data directory: all of it if Homer owns it alone."""
        if self.own:
            return [self.root]
        return [path for name in _NAMES if os.path.lexists(path := self.root / name)]

    def make(self) -> Home:
        """Create the data directory, readable by its owner only, and return this home.

        The permissions of an existing one and of Homer's folders in it are restricted to the owner.

        Raises:
            SetupError: The folder cannot be created or written, or others may write in it.
        """
        _refuse_shared(self.root)
        try:
            for folder in (self.root, self.run, self.logs) if self.own else (self.run, self.logs):
                make_private(folder)
                _refuse_shared(self.root)
            for name in _NAMES:
                # Restrict a folder that somebody made open to others; links are not followed.
                path = self.root / name
                if path.is_dir() and (not path.is_symlink()):
                    restrict_folder(path)
        except OSError as exc:
            raise SetupError(
                f"the data directory {self.root} cannot be made ({exc.strerror}): "
                "set HOMER_HOME to a folder that you can write"
            ) from exc
        return self


TRUST_VARIABLE = "HOMER_TRUST_HOME"
"""Names the data directory that is used although others can write there."""


def _refuse_shared(root: Path) -> None:
    """Check that nobody else can put files in a folder, or another folder in its place.

    Raises:
        SetupError: somebody can; the message says what to do.
    """
    # Its settings name the hosts that are sent what was seen, and much in it is believed.
    if os.environ.get(TRUST_VARIABLE) == str(root):
        return
    for path in dict.fromkeys((root, *root.parents, *root.resolve().parents)):
        with suppress(OSError):
            status = path.stat()
            foreign = status.st_uid not in (0, os.geteuid())
            # In a folder like /tmp nobody removes or renames what others made.
            sticky = status.st_mode & stat.S_ISVTX
            shared = status.st_mode & stat.S_IWOTH or (
                status.st_mode & stat.S_IWGRP and _has_others(status.st_gid)
            )
            # One person who owns a folder above, as on a cluster, is trusted.
            if (foreign and path == root) or (shared and (path == root or foreign or not sticky)):
                raise SetupError(
                    f"others can write in {path}, and so change the data directory {root}: take "
                    "that right from them, or set HOMER_HOME to a folder that is yours alone. If "
                    f"rights cannot be set, and you trust everybody: {TRUST_VARIABLE}={root}"
                )


def _has_others(group: int) -> bool:
    """Check whether a group has members besides root and this user, as far as is known here."""
    users = {user.pw_name for user in pwd.getpwall() if user.pw_gid == group}
    with suppress(KeyError):
        users |= {*grp.getgrgid(group).gr_mem}
    own = {user.pw_name for user in pwd.getpwall() if user.pw_uid in (0, os.geteuid())}
    return bool(users - own)


# The files of recaps in the data directory: ``recaps/PERIOD/VIDEO.md``, and ``all.md`` there.


ALL = "all"


def write_recap_file(home: Home, period: str, name: str, text: str) -> Path:
    """Write a recap of a video by its id, or of all; return the file."""
    folder = home.recaps / period
    make_private(home.recaps)
    make_private(folder)
    path = folder / f"{name}.md"
    with atomic_file(path) as part:
        part.write_text(text, encoding="utf-8")
    return path


def remove_recap_files(home: Home, video: str) -> None:
    for name in (video, ALL):
        for path in home.recaps.glob(f"*/{name}.md"):
            path.unlink(missing_ok=True)
