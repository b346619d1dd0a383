"""Judge whether an answer is right, and withdraw the verdict; skills are learned from verdicts."""

from __future__ import annotations

import streamlit as st

from domain.marked import marked
from domain.skills import JudgedTrajectory
from domain.words import translate
from flows.learning import question_type
from skills.learn import judge, recorded_judgement
from store.database import Store
from store.queries.trajectories import StoredTrajectory
from ui.navigation import page_link

VERDICTS = {True: marked("right"), False: marked("wrong"), None: marked("not judged")}


def show_judgement(store: Store, row: StoredTrajectory) -> None:
    """Draw the verdict on an answer, and the buttons to change it."""
    if row.answer is None or not store.may_change:
        return
    verdict = recorded_judgement(store, row.id)
    with st.container(horizontal=True, vertical_alignment="center", key=f"judge_{row.id}"):
        st.markdown(
            translate("Is this answer right?")
            if verdict is None
            else translate("Judged **{verdict}**.").format(verdict=translate(VERDICTS[verdict]))
        )
        _verdict_button(store, row, verdict, translate("Right"), "thumb_up", right=True)
        _verdict_button(store, row, verdict, translate("Wrong"), "thumb_down", right=False)
        if verdict is not None and st.button(
            translate("Withdraw the verdict"), key=f"unjudge_{row.id}"
        ):
            _record_verdict(store, row, None)
    if verdict is not None:
        page_link("skills", translate("Learn from judged answers"))


def _verdict_button(
    store: Store, row: StoredTrajectory, verdict: bool | None, label: str, icon: str, *, right: bool
) -> None:
    chosen = verdict is right
    pressed = st.button(
        label,
        key=f"judge_{icon}_{row.id}",
        icon=f":material/{icon}:",
        help=translate("The answer is {verdict}").format(verdict=translate(VERDICTS[right])),
        disabled=chosen,
    )
    if pressed:
        _record_verdict(store, row, right)


def _record_verdict(store: Store, row: StoredTrajectory, right: bool | None) -> None:
    judge(
        store,
        JudgedTrajectory(trajectory=row.id, question_type=question_type(row.question), right=right),
    )
    st.rerun()
