"""Which addresses the app may listen on, and how people sign in there."""

from __future__ import annotations

import os
from dataclasses import dataclass
from ipaddress import ip_address

from auth.oidc import Oidc, load_oidc
from auth.password import VARIABLE, stored_hash
from domain.errors import SetupError
from store.home import Home

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
        """Whether people have to sign in."""
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
