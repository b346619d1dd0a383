"""Show what the harness did in a round, each of its parts in a colour of its own."""

from __future__ import annotations

from html import escape

import streamlit as st

from domain.marked import marked
from views.rounds import HarnessPart, Remark
from views.translation import translate

COLOURS = {
    HarnessPart.INFORM: "#1d4ed8",
    HarnessPart.CONSTRAIN: "#9a3412",
    HarnessPart.VERIFY: "#6b21a8",
    HarnessPart.CORRECT: "#9f1239",
}
"""Dark enough for white text."""

STATES = {
    "running": marked("searching"),
    "done": marked("answered"),
    "stopped": marked("stopped"),
    "failed": marked("failed"),
}


def state_in_words(state: str) -> str:
    """Return the state of a search in the language of the page."""
    return translate(STATES.get(state, state))


_LABEL = (
    '<span style="background:{colour};color:#fff;border-radius:0.3rem;padding:0.05rem 0.45rem;'
    'font-size:0.85em;white-space:nowrap">{word}</span>'
)
_LINE = '<li dir="auto" style="margin:0.25rem 0">{mark} {text}</li>'
_LIST = '<ul style="list-style:none;padding:0;margin:0;overflow-wrap:anywhere">{lines}</ul>'


def part_label(part: HarnessPart) -> str:
    """Return the name of a part in its colour, as HTML."""
    return _LABEL.format(colour=COLOURS[part], word=translate(part.value))


def remarks_html(remarks: list[Remark]) -> str:
    """Render remarks as an HTML list, with text from outside escaped."""
    lines = [
        _LINE.format(mark=part_label(remark.part), text=escape(remark.text)) for remark in remarks
    ]
    return _LIST.format(lines="".join(lines))


def show_remarks(remarks: list[Remark]) -> None:
    """Draw the remarks of a round."""
    if remarks:
        st.html(remarks_html(remarks))
    else:
        st.caption(translate("No remarks."))


def show_legend() -> None:
    """Draw the legend of the four colours."""
    meanings = {
        HarnessPart.INFORM: translate("what was shown"),
        HarnessPart.CONSTRAIN: translate("what the rules allowed or refused"),
        HarnessPart.VERIFY: translate("what was new, and which parts are answered"),
        HarnessPart.CORRECT: translate("what was corrected"),
    }
    labels = " ".join(f"{part_label(part)} {text}&nbsp;&nbsp;" for part, text in meanings.items())
    st.html(f'<div style="font-size:0.85rem">{labels}</div>')
