"""The pages of the app, and links from one to another that say what is to be seen there."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

import streamlit as st

NAMES = ("ask", "trajectory", "library", "video", "people", "skills", "evaluations", "health")
"""The pages in their order; each is ``ui/NAME.py`` with a function ``NAME_page``."""

ELSEWHERE = {"people": "people_page", "skills": "skills_page"}
"""Streamlit looks for imports beside its script first, where no file may be called like a room."""


def page_of(name: str) -> st.Page:
    """The page of that name, as the navigation knows it."""
    module = import_module(f"ui.{ELSEWHERE.get(name, name)}")
    draw: Callable[[], None] = getattr(module, f"{name}_page")
    return st.Page(draw, title=name.capitalize(), url_path=name, default=name == NAMES[0])


def link(name: str, label: str, **values: object) -> None:
    """A link to a page; None leaves a parameter out."""
    query = {key: str(value) for key, value in values.items() if value is not None}
    st.page_link(page_of(name), label=label, query_params=query)
