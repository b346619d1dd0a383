"""The data directory: everything that Homer keeps lies under it."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from domain.errors import SetupError
from store.private_files import make_private, narrow

_NAMES = (
    *("postgres", "postgres.new", "blobs", "weights", "logs", "uploads", "run", "prefect", "dask"),
    *("fetched", "backups", ".streamlit", "homer.toml", "app.password"),
)
"""All that Homer keeps in a data directory, and the settings that it reads there."""


@dataclass(frozen=True, slots=True)
class Home:
    """Names the places inside one data directory; makes none of them until asked."""

    root: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", Path(self.root).expanduser().absolute())

    @classmethod
    def default(cls) -> Home:
        """``$HOMER_HOME``, else the platform's folder for user data."""
        named = os.environ.get("HOMER_HOME")
        return cls(Path(named)) if named else cls(_platform_folder())

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
        """The models' files: ``$HOMER_WEIGHTS``, else ``weights`` in the data directory."""
        named = os.environ.get("HOMER_WEIGHTS")
        return Path(named).expanduser().absolute() if named else self.root / "weights"

    @property
    def logs(self) -> Path:
        """The logs of the servers that Homer starts."""
        return self.root / "logs"

    @property
    def uploads(self) -> Path:
        """The files that people gave to the app."""
        return self.root / "uploads"

    @property
    def run(self) -> Path:
        """Sockets, locks and process ids."""
        return self.root / "run"

    @property
    def config(self) -> Path:
        """The user's settings file; it need not exist."""
        return self.root / "homer.toml"

    @property
    def own(self) -> bool:
        """Whether the data directory is Homer's alone.

        It is not where somebody named their home directory, a folder above it, or one that all
        users write to, such as the system's temporary folder: these keep their mode.
        """
        with suppress(OSError):
            root = self.root.resolve()
            return not (Path.home().is_relative_to(root) or root.stat().st_mode & stat.S_ISVTX)
        return True

    def places(self) -> list[Path]:
        """What of the data directory Homer wrote: all of it, where it is Homer's alone."""
        if self.own:
            return [self.root]
        return [path for name in _NAMES if os.path.lexists(path := self.root / name)]

    def make(self) -> Home:
        """Makes the data directory, readable by its owner only, and returns this home.

        One that is there is narrowed to its owner as well, with the folders that Homer keeps in it.

        Raises:
            SetupError: the folder cannot be made or written.
        """
        try:
            for folder in (self.root, self.run, self.logs) if self.own else (self.run, self.logs):
                make_private(folder)
            for name in _NAMES:
                _narrow_own(self.root / name)
        except OSError as exc:
            raise SetupError(
                f"the data directory {self.root} cannot be made ({exc.strerror}): "
                "set HOMER_HOME to a folder that you can write"
            ) from exc
        return self


def _narrow_own(path: Path) -> None:
    """Of a folder that an earlier version left open; what a link leads to is somebody's own."""
    if path.is_dir() and not path.is_symlink():
        narrow(path)


def _platform_folder() -> Path:
    import platformdirs

    return platformdirs.user_data_path("homer", appauthor=False)
