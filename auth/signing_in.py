"""Signing in, by the app's password or with a provider (OpenID Connect) through Streamlit.

The password is stored as a salted hash (scrypt, RFC 7914) and compared in constant time. Sessions
and the throttling of sign-ins are in the memory of the app's process.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import os
import secrets
import threading
import time
import tomllib
from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import Any

from domain.errors import InputError, SetupError
from domain.rights import same_address
from store.files import create_private
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


AUTHLIB_MISSING = "signing in with a provider needs Authlib: pip install 'authlib>=1.6.8'"


@dataclass(frozen=True)
class Oidc:
    """The providers by name, and the users who may sign in (none: all users of the providers)."""

    providers: tuple[str, ...]
    users: frozenset[str]

    def admits(self, user: Mapping[str, Any]) -> bool:
        """Return whether a user may sign in, until what the provider said of them expires."""
        if not user.get("is_logged_in") or user.get("provider") not in self.providers:
            return False
        expires_at = user.get("exp", math.inf)
        if not isinstance(expires_at, int | float) or expires_at <= time.time():
            return False
        return verified_name(user) in self.users if self.users else True


def verified_name(user: Mapping[str, Any]) -> str:
    """Return the name of a provider's user in grants: the verified e-mail address, else the id.

    The id begins with "@", as neither an address nor the name of a key does.
    """
    # Some providers send a string where the standard has a boolean.
    verified = str(user.get("email_verified")).lower() == "true"
    address = same_address(str(user.get("email") or ""))
    if verified and "@" in address:
        return address
    return f"@{user.get('provider', '')}:{user.get('sub', '')}"


def secrets_file(home: Home) -> Path:
    """Return the path of Streamlit's secrets in a data directory."""
    return home.root / ".streamlit" / "secrets.toml"


# ``HOMER_HOME/.streamlit/secrets.toml`` has Streamlit's own section ``[auth]``, and ``[homer] users
# = [...]`` with those who may sign in: e-mail addresses, or the names of ``verified_name``; without
# it, all users of the provider may.
def load_oidc(home: Home) -> Oidc | None:
    """Load the configuration, or return None if there is no provider.

    Raises:
        SetupError: the file is not TOML, lacks what Streamlit needs, or Authlib is missing.
    """
    path = secrets_file(home)
    try:
        config = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SetupError(f"{path} cannot be read: {error}") from error
    auth = config.get("auth")
    if not isinstance(auth, dict):
        return None
    providers = [name for name, one in auth.items() if isinstance(one, dict) and "client_id" in one]
    providers = ["default", *providers] if "client_id" in auth else providers
    missing = [name for name in ("redirect_uri", "cookie_secret") if not auth.get(name)]
    if missing or not providers:
        raise SetupError(f"[auth] in {path} lacks {', '.join(missing) or 'a provider: client_id'}")
    if find_spec("authlib") is None:
        raise SetupError(AUTHLIB_MISSING)
    users = dict(config.get("homer") or {}).get("users") or ()
    return Oidc(tuple(providers), frozenset(same_address(str(user)) for user in users))


def user_from_cookies(cookies: Mapping[str, str]) -> dict[str, Any]:
    """Return the user in Streamlit's signed cookie; empty if there is none or it is invalid."""
    # Streamlit is slow to import; only sign-in through a provider needs it here.
    from streamlit.auth_util import get_cookie_with_chunks
    from streamlit.web.server.server_util import get_cookie_secret
    from streamlit.web.server.starlette.starlette_app_utils import decode_signed_value
    from streamlit.web.server.starlette.starlette_server_config import USER_COOKIE_NAME

    def cookie(name: str) -> bytes | None:
        return decode_signed_value(get_cookie_secret(), name, cookies.get(name, ""))

    try:
        raw = get_cookie_with_chunks(cookie, USER_COOKIE_NAME)
        user = json.loads(raw) if raw else {}
    except ValueError:
        return {}
    return user if isinstance(user, dict) else {}


SESSION_S = 7 * 24 * 3600.0
MAX_ENTRIES = 10_000
"""Limit of sessions, and of clients with failed sign-ins, held in memory."""

Clock = Callable[[], float]


class Sessions:
    """Sessions by the digests of their tokens.

    A session ends after a week, at sign-out, with the process, and when what it was begun with is
    no more: the password's hash, or the provider's user.
    """

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._sessions: dict[bytes, tuple[float, str]] = {}

    def begin(self, holder: str) -> str:
        """Begin a session with the current hash of the password, or a user; return its token."""
        token = secrets.token_urlsafe(32)
        with self._lock:
            while len(self._sessions) >= MAX_ENTRIES:
                self._sessions.pop(next(iter(self._sessions)))
            self._sessions[_digest(token)] = (self._clock() + SESSION_S, holder)
        return token

    def is_valid(self, token: str, holder: str | None) -> bool:
        """Return whether a token belongs to a session that is still valid."""
        with self._lock:
            expires_at, begun_with = self._sessions.get(_digest(token), (0.0, ""))
        return self._clock() < expires_at and begun_with == holder

    def end(self, token: str) -> None:
        with self._lock:
            self._sessions.pop(_digest(token), None)


class Throttle:
    """Allows ``per_client`` failures of a client, ``in_total`` of all, within ``per_s`` seconds."""

    def __init__(
        self,
        per_client: int = 5,
        in_total: int = 60,
        per_s: float = 60.0,
        clock: Clock = time.monotonic,
    ) -> None:
        self._per_client, self._in_total = per_client, in_total
        self._per_s, self._clock = per_s, clock
        self._lock = threading.Lock()
        self._tries: dict[str, deque[float]] = {}
        self._all: deque[float] = deque()

    def wait(self, client: str) -> float:
        """Count a try, and return the seconds that the client has to wait: 0 if it may try now.

        A try counts before it is checked, so that concurrent tries do not evade the limit.
        """
        name, now = _network(client), self._clock()
        with self._lock:
            own_tries = self._tries.setdefault(name, deque())
            waits = [
                self._seconds_left(own_tries, self._per_client, now),
                self._seconds_left(self._all, self._in_total, now),
            ]
            if not any(waits):
                own_tries.append(now)
                self._all.append(now)
            if len(self._tries) > MAX_ENTRIES:
                since = now - self._per_s
                # A client that only ever had to wait, because of the total limit, has no tries.
                expired = [name for name, own in self._tries.items() if not own or own[-1] <= since]
                for name in expired:
                    del self._tries[name]
        return max(waits)

    def reset(self, client: str) -> None:
        """Forget the tries of a client that knows the password."""
        with self._lock:
            self._tries.pop(_network(client), None)

    def _seconds_left(self, tries: deque[float], limit: int, now: float) -> float:
        while tries and tries[0] <= now - self._per_s:
            tries.popleft()
        return tries[0] + self._per_s - now if len(tries) >= limit else 0.0


def _network(client: str) -> str:
    """Return the /64 network of an IPv6 address, else the address; unwrap mapped IPv4."""
    try:
        address = ip_address(client)
    except ValueError:
        return client
    if not isinstance(address, IPv6Address):
        return client
    return str(address.ipv4_mapped) if address.ipv4_mapped else address.exploded[:19]


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


# Signed links that expire, so that an address alone gives no access.
#
# Links to media are signed with a key of the process. Links that are handed on are signed with a
# key in the data directory: it is in no database, back-up or export.

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


# Which addresses the app may listen on, and how people sign in there.


LOOPBACK = ("127.0.0.1", "localhost", "::1", "[::1]")
HOSTS_VARIABLE = "HOMER_APP_NAMES"
"""Host names under which a proxy serves the app, separated by commas."""


@dataclass(frozen=True)
class SignInMethods:
    """How people sign in: password, provider, or neither on this machine only.

    ``names`` are the host names that the app answers to; none means all.
    """

    password: bool
    oidc: Oidc | None
    names: tuple[str, ...]

    @property
    def required(self) -> bool:
        return self.password or self.oidc is not None


def sign_in_methods(home: Home, host: str) -> SignInMethods:
    """Return how people sign in to an app that listens on ``host``.

    Raises:
        SetupError: other machines could reach the app, and no sign-in is configured.
    """
    proxy_names = tuple(
        name.strip() for name in os.environ.get(HOSTS_VARIABLE, "").split(",") if name.strip()
    )
    names = (*LOOPBACK, *proxy_names) if is_loopback(host) else proxy_names
    methods = SignInMethods(stored_hash(home) is not None, load_oidc(home), names)
    if not methods.required and (proxy_names or not is_loopback(host)):
        raise SetupError(
            f"the app would be open to everybody who can reach {', '.join(proxy_names) or host}. "
            f"Set a password first: run `homer password`, or set {VARIABLE}; or let people sign "
            "in with a provider (docs/commands.md, The app)"
        )
    return methods


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach ``host``."""
    if host in LOOPBACK:
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
