"""The four parts of the harness as words in a colour each, and how far a run is."""

from __future__ import annotations

from html import escape

import streamlit as st

from views.rounds import HarnessPart, Remark

COLOURS = {
    HarnessPart.INFORM: "#1d4ed8",
    HarnessPart.CONSTRAIN: "#9a3412",
    HarnessPart.VERIFY: "#6b21a8",
    HarnessPart.CORRECT: "#9f1239",
}
"""White words can be read on each, on light pages and dark ones."""

STATES = {"running": "searching", "done": "answered", "stopped": "stopped", "failed": "failed"}

_MARK = (
    '<span style="background:{colour};color:#fff;border-radius:0.3rem;padding:0.05rem 0.45rem;'
    'font-size:0.85em;white-space:nowrap">{word}</span>'
)
_LINE = '<li dir="auto" style="margin:0.25rem 0">{mark} {text}</li>'
_LIST = '<ul style="list-style:none;padding:0;margin:0;overflow-wrap:anywhere">{lines}</ul>'


def mark(part: HarnessPart) -> str:
    """The part's name in its colour, as HTML."""
    return _MARK.format(colour=COLOURS[part], word=part.value)


def remark_html(remarks: list[Remark]) -> str:
    """Remarks as an HTML list; words from outside are escaped."""
    lines = [_LINE.format(mark=mark(one.part), text=escape(one.text)) for one in remarks]
    return _LIST.format(lines="".join(lines))


def show_remarks(remarks: list[Remark]) -> None:
    """What the harness said in a round."""
    if remarks:
        st.html(remark_html(remarks))
    else:
        st.caption("The harness had nothing to say.")


def show_key() -> None:
    """What the four colours mean."""
    told = {
        HarnessPart.INFORM: "what the model was shown",
        HarnessPart.CONSTRAIN: "what the rules let through",
        HarnessPart.VERIFY: "how much of it was new, what it settles",
        HarnessPart.CORRECT: "what was put right",
    }
    words = " ".join(f"{mark(part)} {text}&nbsp;&nbsp;" for part, text in told.items())
    st.html(f'<div style="font-size:0.85rem">{words}</div>')
