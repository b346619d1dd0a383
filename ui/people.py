"""To be."""

from __future__ import annotations

import streamlit as st


def people_page() -> None:
    """To be."""
    st.title("People")
