"""The app's password: stored as a salted hash (scrypt, RFC 7914), compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from base64 import b64decode, b64encode
from pathlib import Path

from domain.errors import InputError, SetupError
from store.home import Home

MIN_CHARACTERS = 8
"""Minimum length of a password."""

SCRYPT_COST = (2**15, 8, 1)
"""scrypt's N, r and p: 32 MB and a tenth of a second per try."""

VARIABLE = "HOMER_APP_PASSWORD"
FILE_VARIABLE = "HOMER_APP_PASSWORD_FILE"


def password_file(home: Home) -> Path:
    return home.root / "app.password"


def stored_hash(home: Home) -> str | None:
    """Return the stored hash of the password, or None."""
    try:
        return password_file(home).read_text().strip() or None
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SetupError(f"{password_file(home)} cannot be read: {error.strerror}") from error


def set_password(home: Home, password: str) -> None:
    """Store the hash of a password, readable by its owner only.

    Raises:
        InputError: the password is too short.
    """
    if len(password) < MIN_CHARACTERS:
        raise InputError(f"a password of {len(password)} characters: use at least {MIN_CHARACTERS}")
    temporary = password_file(home.make()).with_suffix(".new")
    temporary.unlink(missing_ok=True)
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(hash_password(password) + "\n")
    temporary.replace(password_file(home))


def remove_password(home: Home) -> bool:
    existed = password_file(home).exists()
    password_file(home).unlink(missing_ok=True)
    return existed


def set_password_from_environment(home: Home) -> None:
    """Store the password given in the environment, and remove it from the environment.

    Raises:
        InputError: it is too short, or its file cannot be read.
    """
    password, path = os.environ.pop(VARIABLE, ""), os.environ.pop(FILE_VARIABLE, "")
    if path and not password:
        password = read_password_file(Path(path))
    if password and not password_matches(stored_hash(home), password):
        set_password(home, password)


def read_password_file(path: Path) -> str:
    """Read a password from the first line of a file.

    Raises:
        InputError: the file cannot be read.
    """
    try:
        return path.read_text().partition("\n")[0].rstrip("\r")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the file with the password, {path}, cannot be read: {error}") from error


def hash_password(password: str) -> str:
    """Return ``scrypt$N$r$p$SALT$HASH`` with a random salt."""
    salt = secrets.token_bytes(16)
    fields = [
        *map(str, SCRYPT_COST),
        *(b64encode(raw).decode() for raw in (salt, _hash(password, salt))),
    ]
    return "$".join(["scrypt", *fields])


def password_matches(stored: str | None, password: str) -> bool:
    """Return whether a password matches a stored hash; an invalid hash matches nothing."""
    try:
        name, n, r, p, salt, expected = (stored or "").split("$")
        if name != "scrypt":
            return False
        actual = _hash(password, b64decode(salt), (int(n), int(r), int(p)))
        return hmac.compare_digest(actual, b64decode(expected))
    except (ValueError, MemoryError):
        return False


def _hash(password: str, salt: bytes, cost: tuple[int, int, int] = SCRYPT_COST) -> bytes:
    n, r, p = cost
    raw = password.encode("utf-8", "surrogatepass")
    return hashlib.scrypt(raw, salt=salt, n=n, r=r, p=p, maxmem=256 * n * r, dklen=32)
