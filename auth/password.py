"""The app's password: kept as a salted hash (scrypt, RFC 7914), compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from base64 import b64decode, b64encode
from pathlib import Path

from domain.errors import InputError, SetupError
from store.home import Home

LEAST = 8
"""Characters of a password."""

COST = (2**15, 8, 1)
"""scrypt's N, r and p: 32 MB and a tenth of a second for each try."""

VARIABLE = "HOMER_APP_PASSWORD"
FILE = "HOMER_APP_PASSWORD_FILE"


def place_of(home: Home) -> Path:
    """The file with the hash."""
    return home.root / "app.password"


def kept(home: Home) -> str | None:
    """The hash of the password, where there is one."""
    try:
        return place_of(home).read_text().strip() or None
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SetupError(f"{place_of(home)} cannot be read: {error.strerror}") from error


def keep(home: Home, password: str) -> None:
    """Keeps the hash of a password, readable by its owner only.

    Raises:
        InputError: it is too short.
    """
    if len(password) < LEAST:
        raise InputError(f"a password of {len(password)} characters: use at least {LEAST}")
    aside = place_of(home.make()).with_suffix(".new")
    aside.unlink(missing_ok=True)
    with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(hashed(password) + "\n")
    aside.replace(place_of(home))


def remove(home: Home) -> bool:
    """Forgets the password; False where there is none."""
    there = place_of(home).exists()
    place_of(home).unlink(missing_ok=True)
    return there


def take_given(home: Home) -> None:
    """Keeps the password that the environment gives, which no process begun later sees.

    Raises:
        InputError: it is too short, or the file that is named cannot be read.
    """
    given, named = os.environ.pop(VARIABLE, ""), os.environ.pop(FILE, "")
    if named and not given:
        given = password_in(Path(named))
    if given and not matches(kept(home), given):
        keep(home, given)


def password_in(path: Path) -> str:
    """The first line of a file.

    Raises:
        InputError: it cannot be read.
    """
    try:
        return path.read_text().partition("\n")[0].rstrip("\r")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the file with the password, {path}, cannot be read: {error}") from error


def hashed(password: str) -> str:
    """``scrypt$N$r$p$SALT$HASH``, with a salt of its own."""
    salt = secrets.token_bytes(16)
    told = [*map(str, COST), *(b64encode(raw).decode() for raw in (salt, _hash(password, salt)))]
    return "$".join(["scrypt", *told])


def matches(stored: str | None, password: str) -> bool:
    """Whether the password is the one whose hash is ``stored``; nonsense matches nothing."""
    try:
        name, n, r, p, salt, wanted = (stored or "").split("$")
        if name != "scrypt":
            return False
        found = _hash(password, b64decode(salt), (int(n), int(r), int(p)))
        return hmac.compare_digest(found, b64decode(wanted))
    except (ValueError, MemoryError):
        return False


def _hash(password: str, salt: bytes, cost: tuple[int, int, int] = COST) -> bytes:
    n, r, p = cost
    raw = password.encode("utf-8", "surrogatepass")
    return hashlib.scrypt(raw, salt=salt, n=n, r=r, p=p, maxmem=256 * n * r, dklen=32)
