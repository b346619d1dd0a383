"""Keys of models: from the environment or the system's keyring, and out of all that is kept."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from urllib.parse import quote, unquote, urlsplit

HIDDEN = "[key]"
SERVICE = "homer"
"""Under which the keyring has keys: ``keyring set homer OPENAI_API_KEY``."""
LEAST = 4
"""A secret with fewer letters would be found in any text."""


def read_key(variable: str) -> str | None:
    """The key of that name: the environment's, else the keyring's where that is installed."""
    return os.environ.get(variable) or _from_keyring(variable)


@cache
def _from_keyring(variable: str) -> str | None:
    if find_spec("keyring") is None:
        return None
    try:
        found = import_module("keyring").get_password(SERVICE, variable)
    except Exception:  # noqa: BLE001 - an edge: every keyring has errors of its own, and may be away
        return None
    return str(found) if found else None


def redacted_url(url: str) -> str:
    """An address for messages: neither who asks, nor the password, nor what follows the path."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}"


def secrets_of_url(url: str | None) -> Iterator[str]:
    """What is secret in an address: the password, both as HTTP sends them, and parameters."""
    if url is None:
        return
    parts = urlsplit(url)
    name, password = unquote(parts.username or ""), unquote(parts.password or "")
    if password or name:
        yield b64encode(f"{name}:{password}".encode()).decode()
        yield from (password, parts.netloc.rpartition("@")[0])
    yield from (one.partition("=")[2] for one in parts.query.split("&"))


def redact(text: str, secrets: Iterable[str | None]) -> str:
    """``text`` without these secrets, as they are and as addresses write them."""
    known = {one for one in secrets if one and len(one) >= LEAST}
    for one in sorted(known | {quote(one, safe="") for one in known}, key=len, reverse=True):
        text = text.replace(one, HIDDEN)
    return text
