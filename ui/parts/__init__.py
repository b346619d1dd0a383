"""The few parts of pages that Streamlit does not have: HTML, CSS and JavaScript of ours."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any


@cache
def mount(name: str) -> Any:
    """The mounting command of the part ``name``, whose files lie here.

    No word from outside goes into these files: parts set what they are given as text. The player's
    styles are not kept apart, so that a browser's own tools for videos find it.
    """
    import streamlit as st

    here = Path(__file__).parent
    files = {kind: (here / f"{name}.{kind}").read_text("utf-8") for kind in ("html", "css", "js")}
    return st.components.v2.component(f"homer_{name}", **files, isolate_styles=name != "player")
