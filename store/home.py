"""The data directory: everything that Homer keeps lies under it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from domain.errors import SetupError


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

    def make(self) -> Home:
        """Makes the data directory, readable by its owner only, and returns this home.

        Raises:
            SetupError: the folder cannot be made or written.
        """
        try:
            for folder in (self.root, self.run, self.logs):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as exc:
            raise SetupError(
                f"the data directory {self.root} cannot be made ({exc.strerror}): "
                "set HOMER_HOME to a folder that you can write"
            ) from exc
        return self


def _platform_folder() -> Path:
    import platformdirs

    return platformdirs.user_data_path("homer", appauthor=False)
