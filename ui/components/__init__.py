"""Streamlit components of our own: HTML, CSS and JavaScript."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st


@cache
def component(name: str) -> Any:
    """Return the command that mounts the component ``name``, whose files are in this folder.

    The scripts set their data as text, so no HTML from outside is interpreted. The player is not
    isolated in a shadow root, so that a browser's own tools for videos find it.
    """
    here = Path(__file__).parent
    files = {kind: (here / f"{name}.{kind}").read_text("utf-8") for kind in ("html", "css", "js")}
    return st.components.v2.component(f"homer_{name}", **files, isolate_styles=name != "player")
