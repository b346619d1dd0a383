"""The login of Homer's own Prefect server: a random secret for each data directory."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from domain.errors import SetupError
from store.home import Home

USER = "homer"
VARIABLE = "PREFECT_API_AUTH_STRING"
SERVER_VARIABLE = "PREFECT_SERVER_API_AUTH_STRING"
BYTES = 32


def login_file(home: Home) -> Path:
    """Return the path of the login: one line, ``USER:SECRET``, readable by its owner only."""
    return home.root / "prefect" / "login"


def ensure_login(home: Home) -> str:
    """Return the login of a data directory's server; create it if there is none.

    A login that others could read, or a damaged one, is replaced.

    Raises:
        SetupError: the file can neither be read nor written.
    """
    path = login_file(home)
    try:
        return read_login(home) or _create_login(home)
    except OSError as error:
        raise SetupError(
            f"the login of Prefect's server cannot be kept in {path}: {error.strerror or error}"
        ) from error


def read_login(home: Home) -> str | None:
    """Read the login; None if there is none, or if others could read it."""
    path = login_file(home)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return None
    with os.fdopen(descriptor, encoding="ascii", errors="replace") as file:
        stat = os.fstat(descriptor)
        text = file.read(1000).strip()
    private = stat.st_uid == os.geteuid() and not stat.st_mode & 0o077
    user, _, secret = text.partition(":")
    return text if private and user == USER and len(secret) >= BYTES else None


def _create_login(home: Home) -> str:
    """Write a new login to a temporary file and link it into place: one of two writers wins."""
    path = login_file(home)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    text = f"{USER}:{secrets.token_urlsafe(BYTES)}"
    partial = path.with_name(f".login.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(text + "\n")
    try:
        if path.exists() or path.is_symlink():
            partial.replace(path)  # The present one is damaged or could be read by others.
            return text
        with suppress(FileExistsError):
            os.link(partial, path)
        return read_login(home) or text
    finally:
        partial.unlink(missing_ok=True)
