"""Where the app may listen, and how people come in there."""

from __future__ import annotations

import os
from dataclasses import dataclass
from ipaddress import ip_address

from auth.oidc import Oidc, configured
from auth.password import VARIABLE, kept
from domain.errors import SetupError
from store.home import Home

LOOPBACK = ("127.0.0.1", "localhost", "::1", "[::1]")
NAMES = "HOMER_APP_NAMES"
"""Names under which a proxy leads to the app, with commas between."""


@dataclass(frozen=True)
class SignInMethods:
    """How people come in: with a password, with a provider, or, on this machine only, as they are.

    ``names`` are the host names that the app answers to; none is all.
    """

    password: bool
    oidc: Oidc | None
    names: tuple[str, ...]

    @property
    def closed(self) -> bool:
        """Whether one has to sign in."""
        return self.password or self.oidc is not None


def ways_in(home: Home, host: str) -> SignInMethods:
    """How people come in to an app that listens on ``host``.

    Raises:
        SetupError: it can be reached from elsewhere, and nothing says who may come in.
    """
    others = tuple(name.strip() for name in os.environ.get(NAMES, "").split(",") if name.strip())
    names = (*LOOPBACK, *others) if is_loopback(host) else others
    ways = SignInMethods(kept(home) is not None, configured(home), names)
    if not ways.closed and (others or not is_loopback(host)):
        raise SetupError(
            f"the app would be open to everybody who can reach {', '.join(others) or host}. Give "
            f"it a password first: run `homer password`, or set {VARIABLE}; or let people sign in "
            f"with a provider (docs/commands.md, The app)"
        )
    return ways


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches what listens on ``host``."""
    if host in LOOPBACK:
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
