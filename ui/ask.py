"""The page for asking: the question, the rounds as they go, the answer with its moments."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

import streamlit as st

from cli.answers import answer_line, lines_of
from cli.live import tail
from domain.asking import Question
from domain.errors import HomerError, ModelError
from domain.live import Said
from domain.people import in_words
from domain.time import parse_clock
from graphs.ask import Asked
from graphs.stream import stream
from memory.library import LibraryEntry, list_library
from ui.desk import PageDesk, page_desk, video_url
from ui.words import plain

if TYPE_CHECKING:
    from domain.asking import Citation


WORDS = 120
"""Characters shown of what the model writes at the moment."""


def ask_page() -> None:
    """Asks one question about chosen videos."""
    st.title("Ask")
    try:
        desk = page_desk()
        videos = {entry.id: entry for entry in list_library(desk.store)}
    except HomerError as error:
        st.error(plain(str(error)))
        return
    if not videos:
        st.info("Nothing has been watched yet. In a terminal: `homer ingest FILE`")
        return
    question = _form(videos)
    if question is not None:
        _run(desk, question)
    if "asked" in st.session_state:
        asked, about = st.session_state["asked"]
        _show(asked, about, videos)


def _form(videos: dict[str, LibraryEntry]) -> Question | None:
    """The question, once it is complete and sent."""
    with st.form("question", border=False):
        chosen = st.selectbox("Video", list(videos), format_func=lambda name: videos[name].title)
        text = st.text_input("Question", placeholder="Who opens the talk?")
        with st.expander("Options, and as of when"):
            options = st.text_area("Options, one a line", height=110)
            as_of = st.text_input("As of", placeholder="MM:SS; empty: all that was watched")
        sent = st.form_submit_button("Ask", type="primary")
    if not sent:
        return None
    try:
        return _question(chosen, text, options, as_of)
    except ValueError as error:
        st.warning(plain(str(error)))
        return None


def _question(video: str, text: str, options: str, as_of: str) -> Question:
    if not text.strip():
        raise ValueError("Write a question first.")
    choices = tuple(line.strip() for line in options.splitlines() if line.strip())
    if len(choices) > 26:
        raise ValueError("At most 26 options can be told apart by letters.")
    moment = parse_clock(as_of) if as_of.strip() else None
    return Question(text=text.strip(), videos=(video,), options=choices, as_of_ms=moment)


def _run(desk: PageDesk, question: Question) -> None:
    """Shows the rounds while the machine runs beside the page."""
    st.session_state.pop("asked", None)
    with st.status("Searching the memory ...", expanded=True) as status:
        try:
            st.session_state["asked"] = (asyncio.run(_answered(desk, question)), question)
        except HomerError as error:
            status.update(label="No answer", state="error")
            st.error(plain(str(error)))
        else:
            status.update(label="Done", state="complete", expanded=False)


async def _answered(desk: PageDesk, question: Question) -> Asked:
    """Writes rounds and words as they come; who leaves the page stops the search."""
    made: Asked | None = None
    lines, words = st.container(), st.empty()
    async with aclosing(stream(desk.asker, question)) as told:
        async for one in told:
            if isinstance(one, Asked):
                made = one
            elif isinstance(one, Said):
                words.caption(plain(tail(one, WORDS)))
            else:
                for line in lines_of(one):
                    lines.write(plain(line))
    words.empty()
    if made is None:
        raise ModelError("the machine ended without an answer")
    return made


def _show(asked: Asked, question: Question, videos: dict[str, LibraryEntry]) -> None:
    answer = asked.answer
    st.subheader(plain(answer_line(answer, question)))
    st.caption(f"Confidence {answer.confidence:.2f}. {plain(answer.note)}")
    if answer.not_in_memory:
        st.write("Searched: " + plain("; ".join(answer.searched)))
    for number, citation in enumerate(answer.citations):
        _citation(citation, videos, opened=number == 0)
    st.caption(f"`homer trajectory {asked.trajectory_id}` shows every step.")


def _citation(citation: Citation, videos: dict[str, LibraryEntry], *, opened: bool) -> None:
    entry = videos.get(citation.video)
    title = plain(entry.title) if entry else citation.video
    with st.container(border=True):
        words, player = st.columns([3, 2])
        words.markdown(f"**{citation.span}** {title}")
        words.write(plain(in_words(citation.text)))
        url = video_url(entry.id) if entry and entry.path and opened else None
        if url:
            player.video(url, start_time=citation.span.start_ms // 1000)
