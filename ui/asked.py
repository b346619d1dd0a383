"""The questions of an evaluation run: filtered, a page at a time, each with its trajectory."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from evals.layout import cell
from evals.tables import AnsweredQuestion
from ui.pages import link
from ui.paging import offset_of
from ui.times import lasting
from ui.words import plain

SIZE = 15
"""Questions a page."""
ALL = "all"
VERDICTS = {True: "right", False: "wrong", None: "unjudged"}


def show_questions(rows: Sequence[AnsweredQuestion]) -> None:
    """The questions of one arm, those that the filters let through."""
    st.header("Questions", anchor=False)
    if not rows:
        st.caption("No question was planned yet.")
        return
    found = _filtered(rows)
    if not found:
        st.info("No question is like that.")
        return
    offset = offset_of(len(found), "questions", SIZE)
    for row in found[offset : offset + SIZE]:
        _question(row)


def _filtered(rows: Sequence[AnsweredQuestion]) -> list[AnsweredQuestion]:
    arms = list(dict.fromkeys(row.arm for row in rows))
    kinds = sorted({kind for row in rows for kind in row.types})
    faults = sorted({str(row.fault) for row in rows if row.fault})
    columns = st.columns(4)
    arm = _choice(columns[0], "Arm", arms, "arm")
    verdict = _choice(columns[1], "Answer", list(VERDICTS.values()), "answer")
    kind = _choice(columns[2], "Type", kinds, "type")
    fault = _choice(columns[3], "Why it is wrong", faults, "fault")
    return [
        row
        for row in rows
        if arm in (ALL, row.arm)
        and verdict in (ALL, VERDICTS[row.right])
        and (kind == ALL or kind in row.types)
        and fault in (ALL, str(row.fault))
    ]


def _choice(column: st.delta_generator.DeltaGenerator, label: str, of: list[str], key: str) -> str:
    chosen = column.selectbox(label, [ALL, *of], key=key, bind="query-params", disabled=not of)
    return chosen or ALL


def _question(row: AnsweredQuestion) -> None:
    with st.container(border=True, key=f"question_{row.arm}_{row.id}"):
        if row.trajectory:
            link("trajectory", plain(cell(row.question)), trajectory=row.trajectory)
        else:
            st.write(plain(cell(row.question)))
        verdict = VERDICTS[row.right] if row.judge else "not asked yet"
        said = row.option or row.answer or "nothing"
        reference = plain(cell(row.reference)) or "none is known"
        lines = [f"**{verdict}**: {plain(cell(said))}", f"Reference: {reference}"]
        lines += [plain(cell(row.why))] if row.why else []
        st.markdown("  \n".join(lines))
        st.caption(plain(", ".join(_facts(row))))


def _facts(row: AnsweredQuestion) -> list[str]:
    told = [row.id, row.arm, *row.types]
    told += [str(row.fault)] if row.fault else []
    told += [f"skills: {' '.join(row.skills)}"] if row.skills else []
    if row.trajectory:
        told += [f"{row.rounds} rounds", f"{row.tokens} tokens", lasting(row.seconds)]
        told.append(f"{row.cost_usd:.4f} US dollars")
    return told
