"""The evaluations page: runs over data sets, one of them in full, and two beside each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from domain.errors import HomerError
from evals.export import as_csv, as_page
from evals.layout import cell, effect_table, headline, tables
from evals.paired import Comparison, Flip
from evals.records import compare_runs, find_run, list_runs, page_of_runs, run_report, run_rows
from evals.tables import AnsweredQuestion, RunLine, RunReport
from store.database import Store
from ui import address, chart
from ui.app_state import page_desk
from ui.asked import show_questions
from ui.curves import show_curves
from ui.faults import complain, guarded
from ui.pages import link
from ui.paging import SIZE, offset_of, wanted_offset
from ui.times import moment
from ui.words import plain

LOOK_S = 5.0
"""Seconds between looks at a run that goes on."""
RUNNING = "running"
CHANGES = 25
"""Changed questions a page."""
BY_URL: dict[str | type[Any], Callable[[Any], Any]] = {Store: lambda store: store.url}
"""What is kept of one library is not shown of another."""


def evaluations_page() -> None:
    """One run where the address names it, else the list of them."""
    st.title("Evaluations")
    address.hold()
    guarded(_one if address.told("run") else _list)


def _list() -> None:
    store = page_desk().store
    start = wanted_offset()
    found, total = page_of_runs(store, start, SIZE)
    if not total:
        st.info(
            "No run is on record yet. In a terminal: `homer eval run DATASET FOLDER`; "
            "`homer eval data` lists the data sets."
        )
        return
    offset = offset_of(total)
    if offset != start:
        found, _ = page_of_runs(store, offset, SIZE)
    for one in found:
        with st.container(border=True, key=f"run_{one.name}"):
            link("evaluations", plain(one.name), run=one.name)
            st.caption(plain(_facts(one)))


def _facts(one: RunLine) -> str:
    counts = f"{one.judged} of {max(one.planned, one.questions)} answers judged"
    how = f"data set {one.dataset}, profile {one.profile}, protocol {one.protocol}"
    return f"{one.state}, {counts}, {how}, begun {moment(one.began_at)}"


def _one() -> None:
    store, name = page_desk().store, address.told("run")
    link("evaluations", "← All runs")
    with st.spinner("Reading the run ..."):
        report, rows = read(store, name)
    st.subheader(plain(report.run.name), anchor=False)
    st.caption(plain(f"{_facts(report.run)}, {report.cost_usd:.2f} US dollars"))
    if report.run.state == RUNNING:
        _follow(name, report.run.judged)
    st.markdown(f"**{plain(headline(report))}**")
    for remark in report.remarks:
        st.warning(plain(remark))
    show_curves(report)
    for table in tables(report):
        chart.table(table)
    _skills(report)
    show_questions(rows)
    _compare(store, report.run)
    _export(report, rows)


Read = tuple[RunReport, list[AnsweredQuestion]]
"""A run's report, and its questions."""


def read(store: Store, name: str) -> Read:
    """A run; read anew when more of its answers are judged, and once a minute."""
    return _read(store, name, _stand(store, name))


def _stand(store: Store, name: str) -> str:
    return find_run(store, name).model_dump_json()


@st.cache_data(ttl=60, max_entries=20, show_spinner=False, hash_funcs=BY_URL)
def _read(store: Store, name: str, stand: str) -> Read:
    """A run; ``stand`` is how far it is."""
    del stand
    return run_report(store, name), run_rows(store, name)


@st.cache_data(ttl=60, max_entries=20, show_spinner=False, hash_funcs=BY_URL)
def _beside(store: Store, first: str, second: str, stands: tuple[str, str]) -> Comparison:
    """Two runs; ``stands`` are how far they are."""
    del stands
    return compare_runs(store, first, second)


@st.fragment(run_every=LOOK_S)
def _follow(name: str, judged: int) -> None:
    """Draws the page again when more answers are judged."""
    guarded(lambda: _look(name, judged))


def _look(name: str, judged: int) -> None:
    st.info("This run goes on at this moment; closing the page does not stop it.")
    line = find_run(page_desk().store, name)
    if line.judged != judged or line.state != RUNNING:
        st.rerun()


def _skills(report: RunReport) -> None:
    """The skills that there were, to be opened."""
    if report.skills:
        st.caption("The skills of this run, to be opened:")
        with st.container(horizontal=True, key="skills_of_run"):
            for one in report.skills:
                link("skills", plain(one.name), skill=one.name)


def _compare(store: Store, run: RunLine) -> None:
    st.header("Compare with another run", anchor=False)
    others = [one.name for one in list_runs(store) if one.name != run.name]
    if not others:
        st.caption("There is no other run.")
        return
    wanted = address.told("with_")
    at = others.index(wanted) if wanted in others else None
    other = st.selectbox("The other run", others, index=at, placeholder="Choose one")
    address.say(with_=other)
    if other is not None:
        try:
            _compared(store, run.name, other)
        except HomerError as error:
            complain(error)


def _compared(store: Store, first: str, second: str) -> None:
    stands = (_stand(store, first), _stand(store, second))
    found = _beside(store, first, second, stands)
    chart.table(effect_table("The same questions, answered twice", found.effect))
    if found.alone:
        st.caption(f"{found.alone} more were judged in one of them only.")
    st.subheader("Questions that changed", anchor=False)
    if not found.changes:
        st.caption("None: both are right and wrong about the same.")
        return
    offset = offset_of(len(found.changes), "changed", CHANGES)
    for one in found.changes[offset : offset + CHANGES]:
        _change(one, first, second)


def _change(one: Flip, first: str, second: str) -> None:
    with st.container(border=True, key=f"change_{one.id}"):
        better = "right only in" if one.better else "wrong only in"
        st.markdown(f"{plain(cell(one.question))} **{better} {plain(second)}**")
        for run, said in ((first, one.first), (second, one.second)):
            st.write(plain(f"{run}: {cell(said) or 'no answer'}"))
        with st.container(horizontal=True, key=f"steps_{one.id}"):
            _steps(one, first, second)


def _steps(one: Flip, first: str, second: str) -> None:
    """Links to both searches, and to both side by side."""
    for run, trajectory in ((first, one.first_trajectory), (second, one.second_trajectory)):
        if trajectory:
            link("trajectory", f"Every step of {plain(run)}", trajectory=trajectory)
    if one.first_trajectory and one.second_trajectory:
        both = {"trajectory": one.first_trajectory, "with_": one.second_trajectory}
        link("trajectory", "Both searches compared", **both)


def _export(report: RunReport, rows: Sequence[AnsweredQuestion]) -> None:
    st.header("Take it along", anchor=False)
    st.write("A page that opens in any browser without a network, and a table of every question.")
    if st.button("Make the files", key="make_report"):
        name = report.run.name
        with st.spinner("Writing ..."):
            page, lines = as_page(report, rows), as_csv(rows)
        with st.container(horizontal=True, key="report_files"):
            st.download_button("Download the page", page, f"{name}.html", "text/html")
            st.download_button("Download the table", lines, f"{name}.csv", "text/csv")
