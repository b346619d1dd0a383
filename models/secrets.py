"""Keys of models: read from the environment or the keyring, and redacted from texts."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from urllib.parse import quote, unquote, urlsplit

REDACTED = "[key]"
SERVICE = "homer"
"""Under which the keyring has keys: ``keyring set homer OPENAI_API_KEY``."""
MIN_LENGTH = 4
"""A secret with fewer letters would be found in any text."""


def read_key(variable: str) -> str | None:
    """Return the key of that name from the environment, else from the keyring if installed."""
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


def is_readable(url: str) -> bool:
    """Return whether an address can be split into its parts; ``http://[x`` cannot."""
    try:
        urlsplit(url)
    except ValueError:
        return False
    return True


def redacted_url(url: str) -> str:
    """Return an address for messages, without user, password and query; what is none is hidden."""
    if not is_readable(url):
        return f"{url.partition('://')[0]}://..."
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}"


def without_login(url: str) -> str:
    """Return an address without name and password, whose query is needed to find the same again."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment="").geturl()


def secrets_of_url(url: str | None) -> Iterator[str]:
    """Yield what is secret in an address: user and password, also in HTTP's form, and the query."""
    if url is None:
        return
    if not is_readable(url):
        yield url.partition("://")[2]
        return
    parts = urlsplit(url)
    name, password = unquote(parts.username or ""), unquote(parts.password or "")
    if password or name:
        yield b64encode(f"{name}:{password}".encode()).decode()
        yield from (password, parts.netloc.rpartition("@")[0])
    yield from (one.partition("=")[2] for one in parts.query.split("&"))


def redact(text: str, secrets: Iterable[str | None]) -> str:
    """Replace these secrets in ``text``, as they are and percent-encoded."""
    known = {one for one in secrets if one and len(one) >= MIN_LENGTH}
    for one in sorted(known | {quote(one, safe="") for one in known}, key=len, reverse=True):
        text = text.replace(one, REDACTED)
    return text
