"""The alerts page: standing questions, and the clips that answered them."""

from __future__ import annotations

import streamlit as st

from domain.alerts import AlertKind
from domain.errors import HomerError
from flows.alerts.adding import AlertDraft, add
from flows.workspace import open_workspace
from ui.app_state import page_state
from ui.errors import show_error, show_errors
from ui.formatting import escape_markdown, format_date
from ui.navigation import (
    PAGE_SIZE,
    page_link,
    paginate,
    requested_offset,
    text_param,
    update_address_bar,
)
from views.alerts import ShownAlert, ShownEvent, page_of_events, shown_alerts
from views.library import all_titles
from views.sentences import translate_sentence
from views.translation import format_number, translate
from views.words import counted, format_time


def alerts_page() -> None:
    """Draw the alerts, and their events; those of one alert if the address names it."""
    st.title(translate("Alerts"))
    update_address_bar()
    show_errors(_show)


def _show() -> None:
    store = page_state().store
    alerts = shown_alerts(store)
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
    for one in alerts:
        alert = one.alert
        if chosen in (None, alert.name):
            with st.container(border=True, key=f"alert_{alert.name}"):
                page_link("alerts", escape_markdown(alert.name), alert=alert.name)
                st.write(escape_markdown(alert.wants))
                st.caption(escape_markdown(_facts(one)))
    st.header(translate("Events"), anchor=False)
    requested = requested_offset()
    events, total = page_of_events(store, requested, PAGE_SIZE, chosen)
    if not total:
        st.caption(
            translate("No clip answered an alert yet. Clips are judged once they are in memory.")
        )
        return
    offset = paginate(total)
    if offset != requested:
        events, _ = page_of_events(store, offset, PAGE_SIZE, chosen)
    for event in events:
        _show_event(event)


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
        draft = AlertDraft(name.strip(), AlertKind.TEXT, question, video)
        try:
            with open_workspace(state.profile) as workspace:
                add(workspace, draft, None)
        except HomerError as error:
            show_error(error)
            return
        st.rerun()


def _facts(one: ShownAlert) -> str:
    alert = one.alert
    where = one.title or translate("all videos")
    how = (
        translate("recorded only")
        if alert.delivery is None
        else translate("delivered by {delivery}").format(delivery=alert.delivery)
    )
    return f"{where}, {how}, {counted(one.events, 'event')}"


def _show_event(one: ShownEvent) -> None:
    event = one.event
    at = format_time(event.span.start_ms)
    with st.container(border=True, key=f"event_{event.id}"):
        label = f"{event.alert.name}: {one.title}, {at}"
        page_link("video", escape_markdown(label), video=event.video, t=at)
        st.write(escape_markdown(one.text))
        when = format_date(one.began or event.at)
        facts = translate("{when}, match {score}, {state}").format(
            when=when, score=format_number(event.score, ".2f"), state=translate(event.state)
        )
        st.caption(
            escape_markdown(f"{facts}: {translate_sentence(event.error)}" if event.error else facts)
        )
