"""The recaps page: days and hours summed up, with links to their moments."""

from __future__ import annotations

import streamlit as st

from domain.time import format_clock
from store.queries.recaps import StoredRecap
from store.queries.recaps import recaps_page as page_of_recaps
from ui.app_state import page_state
from ui.errors import show_errors
from ui.formatting import escape_markdown
from ui.navigation import page_link, paginate, requested_offset, update_address_bar
from views.recap_links import linked_citations

PER_PAGE = 10


def recaps_page() -> None:
    """Draw the recaps, the latest first."""
    st.title("Recaps")
    update_address_bar()
    show_errors(_show)


def _show() -> None:
    store, requested = page_state().store, requested_offset(size=PER_PAGE)
    with store.begin() as session:
        recaps, total = page_of_recaps(session, requested, PER_PAGE)
    if not total:
        st.info(
            "There is no recap yet. `homer recap` writes one at once, and "
            "`homer schedule set recap` one every day."
        )
        return
    offset = paginate(total, size=PER_PAGE)
    if offset != requested:
        with store.begin() as session:
            recaps, _ = page_of_recaps(session, offset, PER_PAGE)
    for number, recap in enumerate(recaps):
        _show_recap(number, recap)


def _show_recap(number: int, recap: StoredRecap) -> None:
    with st.container(border=True, key=f"recap_{number}"):
        at = format_clock(recap.span.start_ms)
        label = escape_markdown(f"{recap.period}: {recap.title}")
        page_link("video", label, video=recap.video, t=at)
        st.markdown(linked_citations(recap.text, recap.video))
