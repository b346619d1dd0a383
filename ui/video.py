"""To be."""

from __future__ import annotations

import streamlit as st


def video_page() -> None:
    """To be."""
    st.title("Video")
