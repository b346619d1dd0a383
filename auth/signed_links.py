"""Signed links to media that expire, so that a file's address alone gives no access."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time

VALID_HOURS = 12
_SECRET = secrets.token_bytes(32)
"""The key of this process: links expire with it."""


def sign_path(path: str, now: float | None = None) -> str:
    """Add an expiry and a signature to a path; the link is stable for hours, for players."""
    period = VALID_HOURS * 3600
    until = int(((time.time() if now is None else now) // period + 2) * period)
    return f"{path}?until={until}&key={_signature(path, until)}"


def is_signed(path: str, until: str, key: str, now: float | None = None) -> bool:
    """Return whether this process signed the link, and it has not expired."""
    if not until.isascii() or not until.isdigit() or len(until) > 12:
        return False
    in_time = int(until) > (time.time() if now is None else now)
    return in_time and hmac.compare_digest(_signature(path, int(until)).encode(), key.encode())


def _signature(path: str, until: int) -> str:
    message = f"{path}\n{until}".encode()
    return hmac.new(_SECRET, message, hashlib.sha256).hexdigest()[:32]
