"""Signed links that expire, so that an address alone gives no access.

Links to media are signed with a key of the process. Links that are handed on are signed with a key
in the data directory: it is in no database, back-up or export.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import time
from contextlib import suppress

from domain.errors import SetupError
from store.files import create_private
from store.home import Home

VALID_HOURS = 12
KEY_BYTES = 32
_SECRET = secrets.token_bytes(KEY_BYTES)
"""The key of this process: links expire with it."""


def sign_path(path: str, now: float | None = None) -> str:
    """Add an expiry and a signature to a path; the link is stable for hours, for players."""
    period = VALID_HOURS * 3600
    until = int(((time.time() if now is None else now) // period + 2) * period)
    return sign_until(path, until)


def sign_until(path: str, until: int, secret: bytes = _SECRET) -> str:
    """Add an expiry, in seconds since 1970, and a signature to a path."""
    return f"{path}?until={until}&key={_signature(path, until, secret)}"


def is_signed(
    path: str, until: str, key: str, now: float | None = None, secret: bytes = _SECRET
) -> bool:
    """Return whether the link was signed with ``secret``, and has not expired."""
    if not until.isascii() or not until.isdigit() or len(until) > 12:
        return False
    in_time = int(until) > (time.time() if now is None else now)
    return in_time and hmac.compare_digest(
        _signature(path, int(until), secret).encode(), key.encode("utf-8", "surrogatepass")
    )


def _signature(path: str, until: int, secret: bytes) -> str:
    message = f"{path}\n{until}".encode()
    return hmac.new(secret, message, hashlib.sha256).hexdigest()[:32]


def link_key(home: Home) -> bytes:
    """Return the key of the data directory's links; it is made when it is first needed.

    Raises:
        SetupError: it cannot be read or made.
    """
    path = home.make().root / "links.key"
    try:
        if not path.exists():
            # Make the file; of several processes that do so at once, the first one's stays.
            temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
            with os.fdopen(create_private(temporary, new=True), "wb") as file:
                file.write(secrets.token_bytes(KEY_BYTES))
            try:
                with suppress(FileExistsError):
                    path.hardlink_to(temporary)
            finally:
                temporary.unlink()
        key = path.read_bytes()
    except OSError as error:
        raise SetupError(f"{path} cannot be read: {error.strerror}") from error
    if len(key) != KEY_BYTES:
        raise SetupError(f"{path} is damaged: remove it, which ends all links, and try again")
    return key
