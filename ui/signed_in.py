"""Whose page this is: told to the audit log, so that it knows who asked and deleted."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress

import streamlit as st

from auth.oidc import user_of
from domain.audit import Deed, acting_user
from domain.errors import HomerError
from store.queries.audit import record_deed
from ui.files import shared_store
from ui.signout import HERE

BY_PASSWORD = "app (password)"  # noqa: S105 - a name, and no password
_met: set[str] = set()
"""Digests of the sign-ins by a provider that this process has met."""


def act_as_signed_in() -> None:
    """What this page does from here on is done by whoever is signed in.

    Streamlit does what a press calls before it draws the page: that says it for itself.
    """
    if HERE.closed:
        user = user_of(st.context.cookies)
        named = name_of(user)
        acting_user.set(named or BY_PASSWORD)
        if named:
            _met_first(named, user)


def name_of(user: Mapping[str, object]) -> str:
    """What a provider calls its user: the address, else the name, else its id; "" for none."""
    if not user.get("is_logged_in"):
        return ""
    return str(user.get("email") or user.get("name") or user.get("sub") or "")


def _met_first(named: str, user: Mapping[str, object]) -> None:
    """A sign-in by a provider is Streamlit's own, and is met when it draws its first page."""
    told = f"{named} {user.get('iat', '')} {user.get('exp', '')}"
    digest = hashlib.sha256(told.encode()).hexdigest()
    if digest not in _met:
        _met.add(digest)
        signed_in(named)


def signed_in(who: str = BY_PASSWORD) -> None:
    """Write down that somebody signed in; a database that is away keeps nobody out."""
    before = acting_user.set(who)
    try:
        with suppress(HomerError), shared_store().begin() as session:
            record_deed(session, Deed.SIGNED_IN)
    finally:
        acting_user.reset(before)
