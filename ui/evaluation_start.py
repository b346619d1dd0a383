"""Start an evaluation from its page, and wait for its first records."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import streamlit as st

from domain.errors import InputError, NotFound
from domain.words import translate, translate_sentence
from evals.datasets import sources
from evals.records import find_run
from evals.run_job import RunJob, start_run
from models.profile import profile_names
from ui.app_state import page_state, show_errors
from ui.formatting import escape_markdown
from ui.ingestion import ALLOWED
from ui.navigation import set_params

POLL_S = 2.0
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


@st.fragment(run_every=POLL_S)
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
