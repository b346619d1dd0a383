"""Saying whether an answer is right, and taking it back: skills are learned from it."""

from __future__ import annotations

import streamlit as st

from domain.skills import JudgedTrajectory
from flows.learning import question_type
from skills.learn import judge, recorded_judgement
from store.database import Store
from store.queries.trajectories import StoredTrajectory

VERDICTS = {True: "right", False: "wrong", None: "not judged"}


def show_judgement(store: Store, row: StoredTrajectory) -> None:
    """What was said of an answer, and the buttons to say it."""
    if row.answer is None:
        return
    said = recorded_judgement(store, row.id)
    with st.container(horizontal=True, vertical_alignment="center", key=f"judge_{row.id}"):
        st.markdown("Is this answer right?" if said is None else f"Judged **{VERDICTS[said]}**.")
        _way(store, row, said, "Right", "thumb_up", right=True)
        _way(store, row, said, "Wrong", "thumb_down", right=False)
        if said is not None and st.button("Take the verdict back", key=f"unjudge_{row.id}"):
            _say(store, row, None)
    if said is not None:
        st.caption("The command homer skills learn learns from what was judged.")


def _way(
    store: Store, row: StoredTrajectory, said: bool | None, label: str, icon: str, *, right: bool
) -> None:
    chosen = said is right
    pressed = st.button(
        label,
        key=f"judge_{label}_{row.id}",
        icon=f":material/{icon}:",
        help=f"The answer is {VERDICTS[right]}",
        disabled=chosen,
    )
    if pressed:
        _say(store, row, right)


def _say(store: Store, row: StoredTrajectory, right: bool | None) -> None:
    judge(
        store,
        JudgedTrajectory(trajectory=row.id, question_type=question_type(row.question), right=right),
    )
    st.rerun()
