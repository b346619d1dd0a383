"""The page Schedules: what runs by itself, when, and how its last run ended."""

from __future__ import annotations

import os

import streamlit as st

from domain.errors import HomerError
from domain.words import translate, translate_sentence
from flows.schedules.api import open_schedules, start_schedules
from services.prefect import PrefectServer, api_url
from services.supervisor import ScheduleWorker
from store.home import Home
from ui.app_state import page_state, show_error
from ui.formatting import escape_markdown, format_date

EXAMPLE = "homer schedule set watch folder=~/Videos"
"""A schedule that is created in a terminal."""
SCHEDULE_ERROR = "schedule error"


def schedules_page() -> None:
    """Draw what runs by itself, and when."""
    st.title(translate("Schedules"))
    home = page_state().store.home
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
