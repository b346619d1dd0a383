"""Signing in with a provider (OpenID Connect), as Streamlit does it where it is configured.

``HOMER_HOME/.streamlit/secrets.toml`` has Streamlit's own section ``[auth]``; beside it
``[homer] users = [...]`` says which e-mail addresses may come in, all that the provider knows where
it says nothing.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from domain.errors import SetupError
from store.home import Home

LACKING = "signing in with a provider needs Authlib: pip install 'authlib>=1.6.8'"


@dataclass(frozen=True)
class Oidc:
    """The providers by name, and who may come in; no user is everybody whom a provider knows."""

    providers: tuple[str, ...]
    users: frozenset[str]

    def may(self, user: Mapping[str, Any]) -> bool:
        """Whether this is somebody who may come in."""
        if not user.get("is_logged_in") or user.get("provider") not in self.providers:
            return False
        # Some providers send words where the standard has a boolean.
        sure = str(user.get("email_verified", True)).lower() != "false"
        return not self.users or (sure and str(user.get("email", "")).lower() in self.users)


def secrets_of(home: Home) -> Path:
    """Streamlit's secrets of this data directory."""
    return home.root / ".streamlit" / "secrets.toml"


def configured(home: Home) -> Oidc | None:
    """What is configured; None where no provider is.

    Raises:
        SetupError: the file is no TOML, lacks what Streamlit needs, or Authlib is missing.
    """
    path = secrets_of(home)
    try:
        found = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SetupError(f"{path} cannot be read: {error}") from error
    auth = found.get("auth")
    if not isinstance(auth, dict):
        return None
    providers = [name for name, one in auth.items() if isinstance(one, dict) and "client_id" in one]
    providers = ["default", *providers] if "client_id" in auth else providers
    lacking = [name for name in ("redirect_uri", "cookie_secret") if not auth.get(name)]
    if lacking or not providers:
        raise SetupError(f"[auth] in {path} lacks {', '.join(lacking) or 'a provider: client_id'}")
    if find_spec("authlib") is None:
        raise SetupError(LACKING)
    users = dict(found.get("homer") or {}).get("users") or ()
    return Oidc(tuple(providers), frozenset(str(user).lower() for user in users))


def user_of(cookies: Mapping[str, str]) -> dict[str, Any]:
    """Whom Streamlit's signed cookie names; empty where there is none, or none of this app's."""
    from streamlit.auth_util import get_cookie_with_chunks
    from streamlit.web.server.server_util import get_cookie_secret
    from streamlit.web.server.starlette.starlette_app_utils import decode_signed_value
    from streamlit.web.server.starlette.starlette_server_config import USER_COOKIE_NAME

    def one(name: str) -> bytes | None:
        return decode_signed_value(get_cookie_secret(), name, cookies.get(name, ""))

    try:
        raw = get_cookie_with_chunks(one, USER_COOKIE_NAME)
        found = json.loads(raw) if raw else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def login_path(provider: str) -> str:
    """Where signing in with a provider begins; for the next two minutes."""
    from streamlit.auth_util import encode_provider_token

    return f"/auth/login?provider={encode_provider_token(provider)}"
