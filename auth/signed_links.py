"""Signed links to media, which expire: whoever has the address of the app has no file by it."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time

HOURS = 12
_SECRET = secrets.token_bytes(32)
"""Of this process: links end with it."""


def signed(path: str, now: float | None = None) -> str:
    """``path`` with an end and a signature; the same for hours, so that a player keeps its file."""
    period = HOURS * 3600
    until = int(((time.time() if now is None else now) // period + 2) * period)
    return f"{path}?until={until}&key={_key(path, until)}"


def is_signed(path: str, until: str, key: str, now: float | None = None) -> bool:
    """Whether this process made the link, and it has not ended."""
    if not until.isascii() or not until.isdigit() or len(until) > 12:
        return False
    in_time = int(until) > (time.time() if now is None else now)
    return in_time and hmac.compare_digest(_key(path, int(until)).encode(), key.encode())


def _key(path: str, until: int) -> str:
    told = f"{path}\n{until}".encode()
    return hmac.new(_SECRET, told, hashlib.sha256).hexdigest()[:32]
