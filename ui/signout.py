"""The button that signs out, on every page of an app that one has to sign in to."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from ui.parts import mount


@dataclass
class Process:
    """What the pages of this process are told of its door."""

    closed: bool = False


HERE = Process()


def show_sign_out() -> None:
    """Below the pages; nothing where nobody has to sign in."""
    if HERE.closed:
        with st.sidebar:
            mount("signout")(key="sign out")
