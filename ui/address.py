"""What the address of a page says: which video, moment, trajectory, round, person, segment."""

from __future__ import annotations

from urllib.parse import urlencode

import streamlit as st

from domain.time import parse_clock

LIMIT = 200
"""Characters of a value that are looked at: an address comes from anywhere."""


def told(name: str) -> str:
    """The value of a parameter, empty where there is none."""
    return str(st.query_params.get(name, ""))[:LIMIT]


def all_told(name: str) -> list[str]:
    """All values of a parameter that may come several times."""
    return [value[:LIMIT] for value in st.query_params.get_all(name)[:50]]


def number(name: str, least: int = 0, most: int = 10**9) -> int | None:
    """A whole number within its limits; None where the address has none that fits."""
    value = told(name)
    if not value.isascii() or not value.isdigit() or len(value) > 9:
        return None
    return int(value) if least <= int(value) <= most else None


def moment(name: str = "t") -> int | None:
    """Milliseconds of ``?t=0:02:05`` or ``?t=125``; None where it is no time."""
    try:
        return parse_clock(told(name)) if told(name) else None
    except ValueError:
        return None


def say(**values: object) -> None:
    """Have the address say this; None takes a parameter away. The page is not drawn again."""
    for name, value in values.items():
        if value is None:
            st.query_params.pop(name, None)
        elif st.query_params.get(name) != str(value):
            st.query_params[name] = str(value)


def hold() -> None:
    """Have the browser's bar say what is shown: a link within a page does not see to it."""
    st.query_params.update()


def link(page: str, **values: object) -> str:
    """Where a page shows something: ``/video?video=0123&t=0:02:05``."""
    told = {name: str(value) for name, value in values.items() if value is not None}
    return f"/{page}?{urlencode(told)}" if told else f"/{page}"
