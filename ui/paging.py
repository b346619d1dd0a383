"""One page of a long list at a time; which one is in the address."""

from __future__ import annotations

import streamlit as st

from ui import address

SIZE = 25


def offset_of(total: int, name: str = "page", size: int = SIZE) -> int:
    """Where the page that is wanted begins; draws the way between the pages, where there are any.

    Args:
        total: entries of the whole list.
        name: the parameter of the address.
        size: entries a page.
    """
    pages = max(1, -(-total // size))
    wanted = min(address.number(name, 1) or 1, pages)
    if pages == 1:
        return 0
    chosen = st.pagination(pages, default=wanted, key=f"{name}_of_{pages}")
    address.say(**{name: chosen if chosen > 1 else None})
    first = (chosen - 1) * size
    st.caption(f"{first + 1} to {min(first + size, total)} of {total}")
    return first


def wanted_offset(name: str = "page", size: int = SIZE) -> int:
    """Where the page that the address wants begins, before it is known how many there are."""
    return ((address.number(name, 1) or 1) - 1) * size
