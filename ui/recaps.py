"""The recaps page: days and hours summed up, with links to their moments."""

from __future__ import annotations

from datetime import datetime

import streamlit as st

from domain.built import linked_citations, parse_period
from domain.words import format_time, marked, translate
from flows.recap import recap_model, write_recap
from flows.workspace import open_workspace
from store.queries.outline import recaps_page as page_of_recaps
from ui.app_state import page_state
from ui.formatting import escape_markdown
from ui.language import in_english
from ui.navigation import page_link, paginated, update_address_bar

PER_PAGE = 10
DAYS = {
    "today": (marked("Sum up today"), marked("Nothing of today is in memory.")),
    "yesterday": (marked("Sum up yesterday"), marked("Nothing of yesterday is in memory.")),
}
"""Days that are summed up: the button, and what is said where there is nothing."""


def recaps_page() -> None:
    """Draw the recaps, the latest first."""
    st.title(translate("Recaps"))
    update_address_bar()
    store, above = page_state().store, st.container()
    with st.container(horizontal=True, vertical_alignment="center", key="write"):
        for day, (words, _) in DAYS.items():
            if st.button(translate(words), key=f"sum_up_{day}"):
                with (
                    st.spinner(translate("Writing ...")),
                    open_workspace(page_state().profile) as workspace,
                ):
                    period = parse_period("day", day, datetime.now().astimezone())
                    with in_english():
                        written = write_recap(
                            workspace.store, period, model_for=recap_model(workspace)
                        )
                if written.recaps:
                    st.rerun()
                st.caption(translate(DAYS[day][1]))
    with store.begin() as session:
        recaps = paginated(lambda start: page_of_recaps(session, start, PER_PAGE), size=PER_PAGE)
    if not recaps:
        above.write(
            translate("There is no recap yet. A recap sums up a day, with links to its moments.")
        )
    for number, recap in enumerate(recaps):
        with st.container(border=True, key=f"recap_{number}"):
            at = format_time(recap.span.start_ms)
            label = escape_markdown(f"{recap.period}: {recap.title}")
            page_link("video", label, video=recap.video, t=at)
            st.markdown(linked_citations(recap.text, recap.video))
