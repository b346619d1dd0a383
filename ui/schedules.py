"""The schedules on the health page: when each runs, how it ended last, and a button to pause it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import streamlit as st

from domain.errors import HomerError
from flows.schedules.api import open_schedules
from flows.schedules.worker import ScheduleWorker
from services.prefect import PrefectServer
from store.home import Home
from ui.faults import complain
from ui.times import moment
from ui.words import plain

if TYPE_CHECKING:
    from flows.schedules.deployments import ScheduleEntry

TOLD = "told of a schedule"


def show_schedules(home: Home) -> None:
    """The schedules, each with what can be done with it; none where Prefect's server is away."""
    st.header("Schedules", anchor=False)
    api = api_of(home)
    if api is None:
        st.caption("What Homer does by itself is carried out while `homer up` runs.")
        return
    try:
        with open_schedules(home, api, look=True) as book:
            entries = book.entries()
    except HomerError as error:
        complain(error)
        return
    if told := st.session_state.pop(TOLD, None):
        st.error(plain(told))
    if ScheduleWorker(home).address() is None:
        st.warning("Nothing carries them out at the moment: run `homer up`.")
    for one in entries:
        _schedule(home, api, one)
    st.link_button("Prefect's pages", f"{api.removesuffix('/api')}/deployments")


def api_of(home: Home) -> str | None:
    """Prefect's API, where it runs already: looking at a page starts nothing."""
    own = PrefectServer(home).address()
    return os.environ.get("PREFECT_API_URL") or (f"{own}/api" if own else None)


def _schedule(home: Home, api: str, one: ScheduleEntry) -> None:
    with st.container(border=True, key=f"schedule_{one.name}"):
        state = f", next {moment(one.next)}" if one.next else ""
        st.markdown(f"**{plain(one.name)}** {plain(one.when)}, {'on' if one.on else 'paused'}")
        st.caption(plain(f"{one.kind}{state}"))
        if one.last:
            st.write(plain(f"{one.last.state}: {one.last.told}"))
        with st.container(horizontal=True, key=f"turn_{one.name}"):
            word = "Pause" if one.on else "Resume"
            for label, act in ((word, word.lower()), ("Run now", "run")):
                st.button(
                    label,
                    key=f"{act}_schedule_{one.name}",
                    help=plain(f"{label}: {one.name}"),
                    on_click=_act,
                    args=(home, api, act, one.name),
                )


def _act(home: Home, api: str, act: str, name: str) -> None:
    try:
        with open_schedules(home, api, look=True) as book:
            {"pause": book.pause, "resume": book.resume, "run": book.run}[act](name)
    except HomerError as error:
        st.session_state[TOLD] = str(error)
