"""A run on a page: its rounds while it searches, then the answer with its citations."""

from __future__ import annotations

import streamlit as st

from domain.asking import Answer, level_of_confidence
from domain.skills import JudgedTrajectory
from domain.trajectory import Failed
from domain.words import (
    capitalized,
    counted,
    format_number,
    format_time,
    marked,
    translate,
    translate_sentence,
)
from flows.learning import question_type
from library.answers import answer_lines, note_line, one_line, reply_tail
from library.rounds import History, load_history, round_headline, search_in_words
from library.videos import videos_named
from skills.learn import judge, recorded_judgement
from store.database import Store
from store.queries.trajectories import StoredTrajectory
from ui.app_state import PageState, page_state, show_errors
from ui.evidence import show_moment, video_title
from ui.formatting import escape_markdown, format_duration
from ui.navigation import page_link
from ui.player import played_video, show_player

# Judge whether an answer is right, and withdraw the verdict; skills are learned from verdicts.

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


SIDE_BY_SIDE = """<style>
.st-key-result { display: grid; grid-template-columns: minmax(0, 3fr) minmax(0, 2fr);
  grid-template-rows: auto 1fr; column-gap: 2rem; }
.st-key-result > :nth-child(2) { grid-column: 2; grid-row: 1 / span 2; align-self: start;
  position: sticky; top: 4rem; z-index: 2; }
@media (max-width: 640px) {
  .st-key-result { display: flex; }
  .st-key-result > :nth-child(2) { background: var(--st-background-color, Canvas); }
  .st-key-beside video { max-height: 30vh; }
}
</style>"""
"""The answer and its sources beside the player; below each other in a narrow window."""

MAX_REPLY_CHARS = 120
"""Characters shown of the reply that a model is writing."""

POLL_S = 1.0
"""Seconds between polls of a run."""


def show_run(state: PageState, run: History, *, with_player: bool = True) -> None:
    """Draw a run's rounds while it is at work, then its answer.

    ``with_player``: with a player of its own; else that of the page plays its sources.
    """
    if run.running and (run.at_work or state.runs.running(run.row.id)):
        _poll_run(run.row.id)
        return
    if run.row.answer is None:
        reasons = [one_line(translate_sentence(error.message)) for error in run.of(Failed)]
        message = (
            translate("The search was interrupted: {reason}").format(reason=reasons[-1])
            if reasons
            else translate("The search was interrupted.")
        )
        st.error(escape_markdown(message))
        if st.button(translate("Resume the search"), type="primary"):
            state.runs.resume(state.runner(run.row.profile), run.row.id)
            st.rerun()
        page_link("trajectory", translate("See every step"), trajectory=run.row.id)
        return
    if with_player:
        # Draw the answer, the player, and what the answer rests on; the player stays in view.
        answer = run.row.answer
        st.html(SIDE_BY_SIDE)
        with st.container(key="result"):
            with st.container(key="answer"):
                _show_answer_text(run, answer)
            with st.container(key="beside"):
                videos = videos_named(state.store, run.row.question.videos)
                first = answer.citations[0] if answer.citations else None
                video = played_video()
                # A player that was used for another answer's video begins at what is cited first.
                if video not in videos and first is not None:
                    video = first.video
                if video in videos:
                    start = first.span.start_ms if first and first.video == video else 0
                    show_player(videos[video], start)
                    st.caption(escape_markdown(video_title(videos, video)))
            with st.container(key="sources"):
                _show_sources(state, run, answer)
    else:
        _show_answer_text(run, run.row.answer)
        _show_sources(state, run, run.row.answer)


@st.fragment(run_every=POLL_S)
def _poll_run(name: str) -> None:
    """Show the rounds as they come. The run does not depend on an open page."""
    with show_errors():
        state = page_state()
        run = load_history(state.store, name)
        if not run.running:
            st.rerun()
        rounds = [round_.number for round_ in run.rounds]
        # A block of its own would mark it as complete when the block ends.
        status = st.status(translate("Searching the memory ..."), expanded=True)
        for number in rounds[:-1]:
            status.write(escape_markdown(round_headline(run, number)))
        if rounds:
            status.markdown(f"**{escape_markdown(round_headline(run, rounds[-1]))}**")
        partial_reply = state.runs.said(name)
        if partial_reply is not None:
            status.caption(escape_markdown(reply_tail(partial_reply, MAX_REPLY_CHARS)))
        if state.runs.running(name):
            st.button(
                translate("Stop and keep the best answer so far"),
                on_click=state.runs.stop,
                args=(name,),
            )
        else:
            st.caption(
                translate("Another homer process runs this search: stop it there with Ctrl-C.")
            )
        page_link("trajectory", translate("See every step"), trajectory=name)


def _show_sources(state: PageState, run: History, answer: Answer) -> None:
    """Draw what the answer cites, whether it is right, and the rounds."""
    row = run.row
    videos = videos_named(state.store, row.question.videos)
    if answer.citations:
        st.markdown(f"**{translate('Sources')}**")
    for number, citation in enumerate(answer.citations, start=1):
        show_moment(state.store, citation, videos, f"cited_{row.id}_{number}", number=number)
    show_judgement(state.store, row)
    rounds = run.rounds
    with st.expander(
        translate("{rounds} of searching").format(rounds=counted(len(rounds), "round"))
    ):
        for round_ in rounds:
            label = round_headline(run, round_.number)
            page_link(
                "trajectory", escape_markdown(label), trajectory=run.row.id, round=round_.number
            )


def _show_answer_text(run: History, answer: Answer) -> None:
    """Show an answer, or "Not in memory", each in its own style."""
    question = run.row.question
    # Where no language model phrased it, it quotes the memory.
    is_quote = not (run.calls or answer.option or answer.not_in_memory)
    as_of = (
        ""
        if question.as_of_ms is None
        else translate("(as of {time})").format(time=format_time(question.as_of_ms))
    )
    if answer.not_in_memory:
        st.warning(
            f"**{translate('Not in memory')}** {escape_markdown(as_of)}  \n"
            f"{escape_markdown(translate(answer.text))}"
        )
        if answer.searched:
            st.markdown(translate("Searched for:"))
            st.markdown(
                "\n".join(
                    f"- {escape_markdown(search_in_words(query))}" for query in answer.searched
                )
            )
    else:
        if is_quote:
            st.caption(translate("Closest quote"), help=escape_markdown(note_line(answer)) or None)
        marks = " ".join(f"\\[{number}\\]" for number in range(1, len(answer.citations) + 1))
        lines = answer_lines(answer, question)
        text = "\n\n".join(map(escape_markdown, [*lines[:-1], f"{lines[-1]} {as_of}"]))
        st.markdown(f"{text} :small[{marks}]" if marks else text)
    rounds = counted(len(run.rounds), "round")
    took = f"{rounds}, {format_duration(run.row.seconds)}"
    with st.container(horizontal=True, vertical_alignment="center", key="facts"):
        if not answer.not_in_memory:
            line = translate("Confidence {level}.").format(
                level=translate(level_of_confidence(answer.confidence))
            )
            confidence_line = (
                f"{line} {capitalized(translate(answer.standing))}." if answer.standing else line
            )
            st.caption(
                escape_markdown(confidence_line),
                help=translate("{confidence} on a scale from 0 to 1").format(
                    confidence=format_number(answer.confidence, ".2f")
                ),
            )
        st.caption(took)
        page_link("trajectory", translate("See every step"), trajectory=run.row.id)
    if run.choice is not None:
        st.caption(
            escape_markdown(translate("Strategy: {why}").format(why=translate(run.choice.why)))
        )
    if answer.note and not is_quote:
        st.caption(escape_markdown(note_line(answer)))
