"""The alerts page: standing questions, and the clips that answered them."""

from __future__ import annotations

import streamlit as st

from domain.words import counted, format_number, format_time, translate, translate_sentence
from flows.workspace import open_workspace
from library import alerts as acts
from library.videos import all_titles
from ui.app_state import page_state, show_errors
from ui.formatting import escape_markdown, format_date
from ui.navigation import (
    PAGE_SIZE,
    page_link,
    paginated,
    text_param,
    update_address_bar,
)


def alerts_page() -> None:
    """Draw the alerts, and their hits; those of one alert if the address names it."""
    st.title(translate("Alerts"))
    update_address_bar()
    store = page_state().store
    alerts = acts.alerts(store)
    if not alerts:
        st.write(
            translate(
                "There is no alert yet. An alert is a question that is judged on every new clip."
            )
        )
    _add_form(expanded=not alerts)
    if not alerts:
        return
    chosen = text_param("alert") or None
    if chosen is not None:
        page_link("alerts", translate("← All alerts"))
    for alert in alerts:
        if chosen in (None, alert.name):
            with st.container(border=True, key=f"alert_{alert.name}"):
                page_link("alerts", escape_markdown(alert.name), alert=alert.name)
                st.write(escape_markdown(alert.wants))
                where = alert.title or translate("all videos")
                how = (
                    translate("recorded only")
                    if alert.delivery is None
                    else translate("delivered by {delivery}").format(delivery=alert.delivery)
                )
                st.caption(escape_markdown(f"{where}, {how}, {counted(alert.hits, 'hit')}"))
    st.header(translate("Hits"), anchor=False)
    hits = paginated(lambda start: acts.alert_hits(store, chosen, offset=start, limit=PAGE_SIZE))
    if not hits:
        st.caption(
            translate("No clip answered an alert yet. Clips are judged once they are in memory.")
        )
    for hit in hits:
        at = format_time(hit.span.start_ms)
        with st.container(border=True, key=f"hit_{hit.id}"):
            label = f"{hit.alert}: {hit.title}, {at}"
            page_link("video", escape_markdown(label), video=hit.video, t=at)
            st.write(escape_markdown(hit.text))
            facts = translate("{when}, match {score}, {state}").format(
                when=format_date(hit.at or hit.recorded),
                score=format_number(hit.score, ".2f"),
                state=translate(hit.state),
            )
            st.caption(
                escape_markdown(f"{facts}: {translate_sentence(hit.error)}" if hit.error else facts)
            )


def _add_form(*, expanded: bool) -> None:
    """Draw the form that adds an alert; where its events are sent is set in a terminal."""
    state = page_state()
    titles = all_titles(state.store)
    with (
        st.expander(translate("Add an alert"), expanded=expanded, icon=":material/add:"),
        st.form("add_alert", border=False),
    ):
        question = st.text_input(
            translate("Wait for"), placeholder=translate("someone carries a ladder")
        )
        name = st.text_input(
            translate("Name"),
            placeholder=translate("ladder"),
            help=translate("Small letters, digits, - and _."),
        )
        video = st.selectbox(
            translate("Video"),
            list(titles),
            index=None,
            format_func=lambda video_id: titles[video_id],
            placeholder=translate("All videos, later ones too"),
        )
        sent = st.form_submit_button(translate("Add"), type="primary")
    if sent:
        with show_errors():
            with open_workspace(state.profile) as workspace:
                acts.add_alert(workspace, name.strip(), question, video)
            st.rerun()
