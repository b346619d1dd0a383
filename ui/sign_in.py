"""Who is signed in, for the audit log, and the button to sign out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import streamlit as st

from auth.signing_in import user_from_cookies, verified_name
from domain.errors import HomerError
from domain.rights import Deed, acting_user
from domain.words import translate
from store.queries.rights import record_deed
from ui.components import component
from ui.media import shared_store


@dataclass
class SignInState:
    """Whether people have to sign in to the app of this process, and who did by the password."""

    required: bool = False
    by_password: Callable[[Mapping[str, str]], bool] = lambda _cookies: False
    """Checks the cookies of a browser."""


SIGN_IN = SignInState()


def show_sign_out_button() -> None:
    """Draw the button in the sidebar, if people have to sign in."""
    if SIGN_IN.required:
        with st.sidebar:
            component("signout")(key="sign out", data={"label": translate("Sign out")})


NOBODY = ""
"""The name of a user whom nobody can give a right."""
PASSWORD_USER = "app (password)"  # noqa: S105 - a name, and no password
_recorded: set[str] = set()
"""Digests of the provider sign-ins that this process has recorded."""


def set_acting_user() -> None:
    """Attribute what this page does to the user who is signed in.

    Streamlit runs the callback of a button before it draws the page, so callbacks call this too.
    """
    if SIGN_IN.required:
        user = _provider_user(st.context.cookies)
        name = provider_user_name(user)
        acting_user.set(name or PASSWORD_USER)
        if name:
            # A page is drawn many times in a session, which is recorded once.
            session = f"{name} {user.get('iat', '')} {user.get('exp', '')}"
            digest = hashlib.sha256(session.encode()).hexdigest()
            if digest not in _recorded:
                _recorded.add(digest)
                record_sign_in(name)


def user_in_grants() -> str | None:
    """Return the name of this page's user in grants; see ``user_of``."""
    return user_of(st.context.cookies)


def user_of(cookies: Mapping[str, str]) -> str | None:
    """Return the name of a user in grants; None: nobody signs in, or this one by the password.

    It is the e-mail address that the provider has verified, else the provider's own id. It is
    ``NOBODY`` if the cookies do not say, such as after the browser has left.
    """
    if not SIGN_IN.required:
        return None
    user = _provider_user(cookies)
    if user.get("is_logged_in"):
        return verified_name(user)
    return None if SIGN_IN.by_password(cookies) else NOBODY


def _provider_user(cookies: Mapping[str, str]) -> dict[str, Any]:
    """Return whom the provider named; nobody in a session by the password."""
    # In a session by the password its cookie may be left of an earlier session, or a copy of
    # somebody else's.
    return {} if SIGN_IN.by_password(cookies) else user_from_cookies(cookies)


def provider_user_name(user: Mapping[str, object]) -> str:
    """Return the name of a provider's user in grants, which nobody can choose; "" for none."""
    return verified_name(user) if user.get("is_logged_in") else ""


def record_sign_in(user: str = PASSWORD_USER) -> None:
    """Record a sign-in in the audit log; a database that is down does not prevent it."""
    before = acting_user.set(user)
    try:
        with suppress(HomerError), shared_store().begin() as session:
            record_deed(session, Deed.SIGNED_IN)
    finally:
        acting_user.reset(before)
