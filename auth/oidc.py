"""Sign in with a provider (OpenID Connect), through Streamlit.

``HOMER_HOME/.streamlit/secrets.toml`` has Streamlit's own section ``[auth]``, and
``[homer] users = [...]`` with those who may sign in: e-mail addresses, or the names of
``verified_name``; without it, all users of the provider may.
"""

from __future__ import annotations

import json
import math
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from domain.errors import SetupError
from domain.rights import same_address
from store.home import Home

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
