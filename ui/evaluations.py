"""The evaluations page: the list of runs, the report of one, and the comparison of two."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import streamlit as st

from domain.errors import InputError, NotFound
from domain.evaluation import EvaluationRun
from domain.people import tags_in_words
from domain.words import marked, translate, translate_sentence
from evals.datasets import sources
from evals.example import example_run
from evals.plan import RunJob, start_run
from evals.report import find_run
from evals.report_formats import as_csv, as_page, cell, effect_table, headline, tables
from evals.statistics import Comparison, Flip
from evals.tables import RunReport
from library.evaluations import compare_evaluations, evaluation_report, evaluation_runs
from models.profile import profile_names
from store.database import Store
from ui import charts
from ui.app_state import HASH_BY_URL, page_state, show_errors
from ui.charts import show_curves, show_questions
from ui.formatting import escape_markdown, format_cost, format_date
from ui.ingestion import ALLOWED
from ui.language import in_english
from ui.navigation import (
    PAGE_SIZE,
    page_link,
    paginate,
    paginated,
    set_params,
    text_param,
    update_address_bar,
)

POLL_S = 5.0
"""Seconds between polls of a run."""
RUNNING = "running"
CHANGES_PER_PAGE = 25
"""Changed questions per page."""


def evaluations_page() -> None:
    """Draw the run that the address names, else the list of runs."""
    st.title(translate("Evaluations"))
    update_address_bar()
    if text_param("run"):
        _show_run()
    elif text_param("example"):
        page_link("evaluations", translate("← All runs"))
        _show_example()
    else:
        store = page_state().store
        above = st.container()
        runs = paginated(lambda start: evaluation_runs(store, start, PAGE_SIZE))
        with above:
            if not runs:
                st.write(
                    translate(
                        "No evaluation was run yet. An evaluation asks the questions of a data set "
                        "and counts the right answers."
                    )
                )
            show_start(expanded=not runs)
        if not runs:
            _show_example()
            return
        for run in runs:
            with st.container(border=True, key=f"run_{run.name}"):
                page_link("evaluations", escape_markdown(run.name), run=run.name)
                st.caption(escape_markdown(_facts(run)))
        page_link("evaluations", translate("See an example"), example=1)


def _show_example() -> None:
    """Draw the example run, apart from the runs of the library."""
    report = example_run()
    st.header(translate("Example"), anchor=False)
    st.write(
        translate(
            "This run was recorded by Homer's own evaluation, with rules instead of a "
            "language model, over five short videos. It is no run of your library."
        )
    )
    st.caption(escape_markdown(f"{_facts(report.run)}{_cost(report)}"))
    st.markdown(f"**{escape_markdown(headline(report))}**")
    _show_figures(report)
    show_questions(report.questions)


def _facts(run: EvaluationRun) -> str:
    counts = translate("{judged} of {total} answers judged").format(
        judged=run.judged, total=run.total
    )
    settings = translate("data set {dataset}, models {profile}, protocol {protocol}").format(
        dataset=run.settings.dataset,
        profile=run.settings.profile,
        protocol=run.settings.protocol,
    )
    return translate("{state}, {counts}, {settings}, begun {date}").format(
        state=translate(run.state), counts=counts, settings=settings, date=format_date(run.began_at)
    )


def _cost(report: RunReport) -> str:
    """Return what the run cost; nothing where no model was paid for."""
    return f", {format_cost(report.cost_usd, '.2f')}" if report.cost_usd else ""


def _show_run() -> None:
    store, name = page_state().store, text_param("run")
    page_link("evaluations", translate("← All runs"))
    with st.spinner(translate("Reading the run ...")):
        report = _load_run(store, name, _progress_key(store, name))
    st.header(escape_markdown(report.run.name), anchor=False)
    st.caption(escape_markdown(f"{_facts(report.run)}{_cost(report)}"))
    if report.run.state == RUNNING:
        _poll_run(name, report.run.judged)
    st.markdown(f"**{escape_markdown(headline(report))}**")
    if report.remarks:
        st.warning("  \n".join(escape_markdown(remark) for remark in report.remarks))
    _show_figures(report)
    if report.skills:
        st.caption(translate("Skills of this run:"))
        with st.container(horizontal=True, key="skills_of_run"):
            for skill in report.skills:
                page_link("skills", escape_markdown(skill.name), skill=skill.name)
    show_questions(report.questions)
    _show_comparison_form(store, report.run)
    st.header(translate("Export"), anchor=False)
    st.write(
        translate("An HTML page that works without a network, and a CSV table of all questions.")
    )
    if st.button(translate("Make the files"), key="make_report"):
        name = report.run.name
        # The files are the same in every language, as those of the terminal are.
        with st.spinner(translate("Writing ...")), in_english():
            page, lines = as_page(report), as_csv(report.questions)
        with st.container(horizontal=True, key="report_files"):
            st.download_button(translate("Download the page"), page, f"{name}.html", "text/html")
            st.download_button(translate("Download the table"), lines, f"{name}.csv", "text/csv")


def _show_figures(report: RunReport) -> None:
    show_curves(report)
    for table in tables(report):
        charts.report_table(table)


def _progress_key(store: Store, name: str) -> str:
    return find_run(store, name).model_dump_json()


@st.cache_data(ttl=60, max_entries=20, show_spinner=False, hash_funcs=HASH_BY_URL)
def _load_run(store: Store, name: str, progress: str) -> RunReport:
    """Load a run, anew after a minute and when more is judged: ``progress`` is part of the key."""
    del progress
    return evaluation_report(store, name)


@st.cache_data(ttl=60, max_entries=20, show_spinner=False, hash_funcs=HASH_BY_URL)
def _load_comparison(
    store: Store, first: str, second: str, progress: tuple[str, str]
) -> Comparison:
    """Compare two runs; ``progress`` is part of the cache key."""
    del progress
    return compare_evaluations(store, first, second)


@st.fragment(run_every=POLL_S)
def _poll_run(name: str, judged: int) -> None:
    """Draw the page again when more answers are judged."""
    with show_errors():
        st.caption(translate("This run is in progress; closing the page does not stop it."))
        line = find_run(page_state().store, name)
        if line.judged != judged or line.state != RUNNING:
            st.rerun()


def _show_comparison_form(store: Store, run: EvaluationRun) -> None:
    st.header(translate("Compare with another run"), anchor=False)
    # All of them: one is chosen by its name, not by a page.
    others = [one.name for one in evaluation_runs(store, limit=10**6).items if one.name != run.name]
    if not others:
        st.caption(translate("There is no other run."))
        return
    requested = text_param("with_")
    index = others.index(requested) if requested in others else None
    other = st.selectbox(
        translate("The other run"), others, index=index, placeholder=translate("Choose one")
    )
    set_params(with_=other)
    if other is not None:
        with show_errors():
            progress = (_progress_key(store, run.name), _progress_key(store, other))
            comparison = _load_comparison(store, run.name, other, progress)
            charts.report_table(
                effect_table(marked("The same questions in both runs"), comparison.effect)
            )
            if comparison.alone:
                st.caption(
                    translate("{alone} more were judged in only one of the runs.").format(
                        alone=comparison.alone
                    )
                )
            st.subheader(translate("Questions that changed"), anchor=False)
            if not comparison.changes:
                st.caption(translate("None: both runs have the same answers right."))
            else:
                offset = paginate(len(comparison.changes), "changed", CHANGES_PER_PAGE)
                for change in comparison.changes[offset : offset + CHANGES_PER_PAGE]:
                    _show_change(change, run.name, other)


def _show_change(change: Flip, first: str, second: str) -> None:
    with st.container(border=True, key=f"change_{change.id}"):
        verdict = (
            translate("right only in {run}") if change.better else translate("wrong only in {run}")
        )
        verdict = verdict.format(run=escape_markdown(second))
        st.markdown(f"{escape_markdown(cell(change.question))} **{verdict}**")
        for run, answer in ((first, change.first), (second, change.second)):
            st.write(
                escape_markdown(f"{run}: {cell(tags_in_words(answer)) or translate('no answer')}")
            )
        runs = {first: change.first_trajectory, second: change.second_trajectory}
        with st.container(horizontal=True, key=f"steps_{change.id}"):
            for run, trajectory in runs.items():
                if trajectory:
                    step = translate("Every step of {run}").format(run=escape_markdown(run))
                    page_link("trajectory", step, trajectory=trajectory)
            if all(runs.values()):
                both = {"trajectory": change.first_trajectory, "with_": change.second_trajectory}
                page_link("trajectory", translate("Compare both searches"), **both)


# Start an evaluation from its page, and wait for its first records.

START_POLL_S = 2.0
STARTED = "evaluation started"
"""Session key of the evaluation that was started last."""


def show_start(*, expanded: bool) -> None:
    """Draw the form that starts an evaluation, and one that is starting."""
    if not ALLOWED.any_path:
        st.caption(translate("Evaluations are started in a terminal: `homer eval run`."))
        return
    state = page_state()
    with (
        st.expander(
            translate("Run an evaluation"), expanded=expanded, icon=":material/play_arrow:"
        ),
        st.form("evaluate", border=False),
    ):
        names = [source.name for source in sources()]
        dataset = st.selectbox(
            translate("Data set"), names, help=translate("`homer eval data` describes them.")
        )
        folder = st.text_input(
            translate("Folder of its files"), placeholder="/home/me/my-questions"
        )
        profiles = profile_names(state.store.home.config)
        index = profiles.index(state.profile) if state.profile in profiles else 0
        profile = st.selectbox(translate("Models"), profiles, index=index)
        sent = st.form_submit_button(translate("Evaluate"), type="primary")
    if sent:
        with show_errors():
            if not folder.strip():
                raise InputError(translate("name the folder that has the files of the data set"))
            st.session_state[STARTED] = start_run(
                state.store.home, dataset, Path(folder.strip()), profile
            )
    if job := st.session_state.get(STARTED):
        _wait_for(job)


@st.fragment(run_every=START_POLL_S)
def _wait_for(job: RunJob) -> None:
    with show_errors():
        with suppress(NotFound):
            find_run(page_state().store, job.name)
            st.session_state.pop(STARTED, None)
            set_params(run=job.name)
            st.rerun()
        if job.running:
            st.info(
                translate("The evaluation starts: videos that are not in memory are watched first.")
            )
        else:
            st.error(
                escape_markdown(
                    translate("The evaluation ended: {reason}").format(
                        reason=translate_sentence(job.error)
                        or translate("see {file}").format(file=job.log)
                    )
                )
            )
