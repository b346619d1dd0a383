"""The page for asking: the question, the rounds as they go, the answer with its moments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from domain.asking import Answer, Question, check_options, level_of_confidence
from domain.errors import HomerError, InputError
from domain.media import Video
from domain.time import parse_clock
from models.profile import profile_names
from ui import address
from ui.app_state import PageState, page_desk
from ui.evidence import show_moment, titles
from ui.faults import complain, guarded
from ui.judging import show_judgement
from ui.marks import show_remarks
from ui.pages import link
from ui.player import player
from ui.times import hms, lasting
from ui.words import plain
from views.answer_lines import answer_line, one_line, reply_tail
from views.library import all_titles, videos_named
from views.rounds import RUNNING, InspectedTrajectory, inspect_trajectory, round_headline

WORDS = 120
"""Characters shown of what the model writes at the moment."""

LOOK_S = 1.0
"""Seconds between looks at a run that goes on."""


def ask_page() -> None:
    """Asks about chosen videos, and shows the question that the address names."""
    st.title("Ask")
    guarded(_body)


def _body() -> None:
    desk = page_desk()
    known = all_titles(desk.store)
    if not known:
        st.info(
            "Nothing has been watched yet. Add a video on the page Library, or in a terminal: "
            "`homer ingest FILE`"
        )
        return
    name = address.told("trajectory")
    shown = _opened(desk, name) if name else None
    _form(desk, known, shown)
    if shown is not None:
        _one(desk, shown)


def _opened(desk: PageState, name: str) -> InspectedTrajectory | None:
    try:
        return inspect_trajectory(desk.store, name)
    except InputError as error:
        complain(error)
        return None


def _form(desk: PageState, known: Mapping[str, str], shown: InspectedTrajectory | None) -> None:
    """The question; once it is complete and sent, its search is begun beside the page."""
    with st.form("question", border=False):
        default = _before(known, shown)
        chosen = st.multiselect(
            "Videos",
            list(known),
            default=default,
            format_func=lambda name: known[name],
            key=f"videos_{'_'.join(default)[:80]}",
        )
        text = st.text_input("Question", placeholder="Who opens the talk?")
        with st.expander("Options, as of when, and with which models"):
            options = st.text_area("Options, one a line", height=110)
            as_of = st.text_input("As of", placeholder="H:MM:SS; empty: all that was watched")
            names = profile_names(desk.store.home.config)
            profile = st.selectbox("Models", names, index=_place(names, desk.profile))
        sent = st.form_submit_button("Ask", type="primary")
    # A place of its own, so that what follows stays where it is.
    place = st.container()
    if sent:
        try:
            _begin(desk, _question(chosen, text, options, as_of), profile)
        except (HomerError, ValueError) as error:
            told = str(error)
            place.warning(plain(told[:1].upper() + told[1:]))


def _before(known: Mapping[str, str], shown: InspectedTrajectory | None) -> list[str]:
    """The videos that are chosen at first: a follow-up keeps those of the question before."""
    asked = shown.row.question.videos if shown else address.all_told("video")
    found = [name for name in asked if name in known]
    return found or list(known)[:1]


def _place(names: Sequence[str], name: str) -> int:
    return list(names).index(name) if name in names else 0


def _question(videos: Sequence[str], text: str, options: str, as_of: str) -> Question:
    if not text.strip():
        raise InputError("Write a question first.")
    if not videos:
        raise InputError("Choose at least one video.")
    lines = [line.strip() for line in options.splitlines() if line.strip()]
    moment = parse_clock(as_of) if as_of.strip() else None
    choices = check_options(lines)
    return Question(text=text.strip(), videos=tuple(videos), options=choices, as_of_ms=moment)


def _begin(desk: PageState, question: Question, profile: str) -> None:
    with st.spinner("Beginning the search ..."):
        name = desk.runs.ask(desk.runner(profile), question)
    address.say(trajectory=name, video=None)
    st.rerun()


def _one(desk: PageState, shown: InspectedTrajectory) -> None:
    st.divider()
    st.markdown(f"**{plain(shown.row.question.text)}**")
    if shown.row.state == RUNNING and (shown.at_work or desk.runs.running(shown.row.id)):
        _live(shown.row.id)
        return
    if shown.row.answer is None:
        _broken(desk, shown)
        return
    _answer(desk, shown, shown.row.answer)


def _broken(desk: PageState, shown: InspectedTrajectory) -> None:
    reasons = [error.message for error in shown.history.errors]
    told = f"The search was broken off: {reasons[-1]}" if reasons else "The search was broken off."
    st.error(plain(told))
    if st.button("Go on searching", type="primary"):
        desk.runs.resume(desk.runner(shown.row.profile), shown.row.id)
        st.rerun()
    link("trajectory", "See every step", trajectory=shown.row.id)


@st.fragment(run_every=LOOK_S)
def _live(name: str) -> None:
    """The rounds as they come. The search goes on whether or not anybody looks."""
    guarded(lambda: _progress(name))


def _progress(name: str) -> None:
    desk = page_desk()
    shown = inspect_trajectory(desk.store, name)
    if shown.row.state != RUNNING:
        st.rerun()
    rounds = [one.number for one in shown.history.rounds]
    with st.status("Searching the memory ...", expanded=True):
        for number in rounds[:-1]:
            st.write(plain(round_headline(shown.history, number)))
        if rounds:
            st.markdown(f"**{plain(round_headline(shown.history, rounds[-1]))}**")
            show_remarks(shown.remarks(rounds[-1]))
        said = desk.runs.said(name)
        if said is not None:
            st.caption(plain(reply_tail(said, WORDS)))
    if desk.runs.running(name):
        st.button("Stop and keep the best answer so far", on_click=desk.runs.stop, args=(name,))
    else:
        st.caption("It is searched by another homer process: Ctrl-C there stops it.")
    link("trajectory", "See every step", trajectory=name)


def _answer(desk: PageState, shown: InspectedTrajectory, answer: Answer) -> None:
    row = shown.row
    videos = videos_named(desk.store, row.question.videos)
    left, right = st.columns([3, 2])
    with left:
        _said(row.question, answer)
        took = f"{len(shown.history.rounds)} rounds, {lasting(row.seconds)}"
        st.caption(plain(f"{_sureness(answer)} {took}. {answer.note}"))
        show_judgement(desk.store, row)
        _lines(shown)
        for number, citation in enumerate(answer.citations):
            show_moment(desk.store, citation, videos, f"cited_{row.id}_{number}")
        link("trajectory", "See every step", trajectory=row.id)
    with right:
        _player(answer, videos)


def _sureness(answer: Answer) -> str:
    """How sure an answer is and how well it is supported, in sentences."""
    told = f"Confidence {level_of_confidence(answer.confidence)} ({answer.confidence:.2f})."
    return f"{told} {answer.standing.capitalize()}." if answer.standing else told


def _said(question: Question, answer: Answer) -> None:
    """An answer, or that memory does not hold one or cannot tell: they look different."""
    as_of = "" if question.as_of_ms is None else f"(as of {hms(question.as_of_ms)})"
    if not answer.not_in_memory and not answer.declined:
        st.subheader(plain(f"{answer_line(answer, question)} {as_of}"), anchor=False)
        return
    if answer.declined:
        st.info(f"**Can't tell** {plain(as_of)}  \n{plain(one_line(answer.text))}")
        return
    st.warning(f"**Not in memory** {plain(as_of)}  \n{plain(answer.text)}")
    if answer.searched:
        st.markdown("What was searched:")
        st.markdown("\n".join(f"- {plain(one)}" for one in answer.searched))


def _lines(shown: InspectedTrajectory) -> None:
    """The rounds, a line each."""
    rounds = shown.history.rounds
    with st.expander(f"{len(rounds)} rounds of searching"):
        for one in rounds:
            label = round_headline(shown.history, one.number)
            link("trajectory", plain(label), trajectory=shown.row.id, round=one.number)


def _player(answer: Answer, videos: Mapping[str, Video]) -> None:
    first = answer.citations[0] if answer.citations else None
    sought = st.session_state.get("sought by player", ("", 0, 0))[0]
    video = sought if sought in videos else (first.video if first else next(iter(videos), ""))
    if video in videos:
        st.caption(plain(titles(videos, video)))
        start = first.span.start_ms if first and first.video == video else 0
        player(videos[video], start)
