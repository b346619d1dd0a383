"""To be."""

from __future__ import annotations

import streamlit as st


def health_page() -> None:
    """To be."""
    st.title("Health")
