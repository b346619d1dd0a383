"""The pages Alerts, Schedules and Recaps: what is judged, done and summed up by itself."""

from __future__ import annotations

import os
from datetime import datetime

import streamlit as st

from domain.built import linked_citations, parse_period
from domain.errors import HomerError
from domain.words import counted, format_number, format_time, marked, translate, translate_sentence
from flows.recap import recap_model, write_recap
from flows.schedules.kinds import open_schedules, start_schedules
from flows.workspace import open_workspace
from library import alerts as acts
from library.videos import all_titles
from services.supervisor import PrefectServer, ScheduleWorker, api_url
from store.home import Home
from store.queries.outline import recaps_page as page_of_recaps
from ui.app_state import page_state, show_error, show_errors
from ui.formatting import escape_markdown, format_date
from ui.language import in_english
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


# The page Schedules: what runs, when, and how its last run ended.


EXAMPLE = "homer schedule set watch folder=~/Videos"
"""A schedule that is created in a terminal."""
SCHEDULE_ERROR = "schedule error"


def schedules_page() -> None:
    st.title(translate("Schedules"))
    home = page_state().store.home
    # Looking starts no server: without one there is a button that does.
    own = PrefectServer(home).address()
    api = os.environ.get("PREFECT_API_URL") or (f"{own}/api" if own else None)
    if api is None:
        _offer_start(home)
        return
    try:
        with open_schedules(home, api, look=True) as schedules:
            entries = schedules.entries()
    except HomerError as error:
        show_error(error)
        return
    if message := st.session_state.pop(SCHEDULE_ERROR, None):
        st.error(escape_markdown(translate_sentence(message)))
    if ScheduleWorker(home).address() is None:
        _offer_start(home)
    if not entries:
        st.write(translate("There is no schedule yet. Add one in a terminal:"))
        st.code(EXAMPLE, language=None)
    for entry in entries:
        with st.container(border=True, key=f"schedule_{entry.name}"):
            next_run = (
                translate(", next {date}").format(date=format_date(entry.next))
                if entry.next
                else ""
            )
            name, when = escape_markdown(entry.name), escape_markdown(entry.when)
            st.markdown(
                f"**{name}** {when}, {translate('on') if entry.on else translate('paused')}"
            )
            st.caption(escape_markdown(f"{entry.kind}{next_run}"))
            if entry.last:
                st.write(escape_markdown(f"{entry.last.state}: {entry.last.told}"))
            with st.container(horizontal=True, key=f"turn_{entry.name}"):
                turn = (
                    ("pause", translate("Pause")) if entry.on else ("resume", translate("Resume"))
                )
                for action, label in (turn, ("run", translate("Run now"))):
                    st.button(
                        label,
                        key=f"{action}_schedule_{entry.name}",
                        help=escape_markdown(f"{label}: {entry.name}"),
                        on_click=_change_schedule,
                        args=(home, api, action, entry.name),
                    )
    st.link_button(translate("Open Prefect"), f"{api.removesuffix('/api')}/deployments")


def _offer_start(home: Home) -> None:
    st.write(translate("Nothing runs the schedules at the moment."))
    if not st.button(translate("Start them"), type="primary", key="start_schedules"):
        return
    with st.spinner(translate("Starting; the first time takes half a minute ...")):
        start_schedules(home, api_url(home))
    st.rerun()


def _change_schedule(home: Home, api: str, action: str, name: str) -> None:
    try:
        with open_schedules(home, api, look=True) as schedules:
            {"pause": schedules.pause, "resume": schedules.resume, "run": schedules.run}[action](
                name
            )
    except HomerError as error:
        st.session_state[SCHEDULE_ERROR] = str(error)


# The page Recaps: days and hours summed up, with links to their moments.


PER_PAGE = 10
DAYS = {
    "today": (marked("Sum up today"), marked("Nothing of today is in memory.")),
    "yesterday": (marked("Sum up yesterday"), marked("Nothing of yesterday is in memory.")),
}
"""Days that are summed up: the button, and what is said where there is nothing."""


def recaps_page() -> None:
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
                    # It is stored: readers of other languages get the same.
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
