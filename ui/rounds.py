"""The rounds of a trajectory: on a timeline of the video, and one at a time with its changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from domain.asking import Evidence
from domain.media import Video
from store.database import Store
from ui.evidence import show_moment, video_title
from ui.formatting import escape_markdown, format_duration, format_span
from ui.harness_remarks import show_legend, show_remarks
from ui.navigation import int_param, set_params
from ui.player import played_video, seek, show_player
from ui.timeline import TONES, Lane, TimelineBar, show_timeline
from views.rounds import (
    InspectedTrajectory,
    ShownCall,
    SubtaskChange,
    calls_in_round,
    round_headline,
)
from views.trajectory import Round
from views.words import counted

MAX_EVIDENCE = 5
"""Pieces of evidence shown at first; an expander has the others."""


def show_rounds(store: Store, inspected: InspectedTrajectory, videos: Mapping[str, Video]) -> None:
    """Draw the timeline, the stepper, and the round that the address names."""
    numbers = [0, *(round_.number for round_ in inspected.history.rounds)]
    chosen = _selected_round(numbers)
    st.header("Rounds", anchor=False)
    for video in videos.values():
        _show_timeline(inspected, video, chosen)
    chosen = _show_stepper(inspected, numbers, chosen)
    left, right = st.columns([3, 2])
    with right:
        _show_round_video(inspected, videos, chosen)
        _show_ledger(inspected, chosen)
    with left:
        _show_round(store, inspected, videos, chosen)
    _show_calls(calls_in_round(store, inspected, chosen))


def _selected_round(numbers: Sequence[int]) -> int:
    """Return the round that the address names, else the first round."""
    requested = int_param("round")
    if requested is not None and requested in numbers:
        return requested
    return numbers[min(1, len(numbers) - 1)]


def _show_timeline(inspected: InspectedTrajectory, video: Video, chosen: int) -> None:
    lanes = [_lane(round_, video.id) for round_ in inspected.history.rounds]
    if not lanes:
        return
    name = f"Evidence of each round in {video.title}"
    st.markdown(f"**{escape_markdown(name)}**")
    current = str(chosen)
    picked = show_timeline(name, video.duration_ms, lanes, f"rounds_{video.id}", chosen=current)
    if picked:
        number, _, start = picked.partition("@")
        seek(video.id, int(start or 0))
        _open_round(int(number))


def _lane(round_: Round, video: str) -> Lane:
    tone = TONES[(round_.number - 1) % len(TONES)]
    found = round_.found.evidence if round_.found else ()
    bars = [_bar(round_, piece, tone) for piece in found if piece.video == video]
    return Lane(f"Round {round_.number}: {round_.subtask}", bars)


def _bar(round_: Round, evidence: Evidence, tone: str) -> TimelineBar:
    mode = round_.found.mode if round_.found else ""
    place = f"Round {round_.number}, {mode}, {format_span(evidence.span)}"
    label = f"{place}, [{evidence.ref}] {evidence.text[:120]}"
    start, end = evidence.span.start_ms, evidence.span.end_ms
    return TimelineBar(f"{round_.number}@{start}", start, end, label, evidence.ref, tone)


def _show_stepper(inspected: InspectedTrajectory, numbers: Sequence[int], chosen: int) -> int:
    """Draw buttons for the round before and after; the arrow keys press them."""
    index = numbers.index(chosen)
    with st.container(horizontal=True, vertical_alignment="center", key="stepper"):
        if st.button("Back", shortcut="Left", disabled=index == 0, key="back"):
            _open_round(numbers[index - 1])
        if st.button("Next", shortcut="Right", disabled=index == len(numbers) - 1, key="next"):
            _open_round(numbers[index + 1])
        headline = (
            round_headline(inspected.history, chosen)
            if chosen
            else "Before the first round: the plan"
        )
        st.markdown(f"**{escape_markdown(headline)}**")
        st.caption(f"Step {index + 1} of {len(numbers)}; the arrow keys go back and forth.")
    set_params(round=chosen)
    return chosen


def _open_round(number: int) -> None:
    set_params(round=number)
    st.rerun()


def _show_round(
    store: Store, inspected: InspectedTrajectory, videos: Mapping[str, Video], chosen: int
) -> None:
    st.subheader("What happened in this step", anchor=False)
    show_legend()
    show_remarks(inspected.remarks(chosen))
    round_ = next((other for other in inspected.history.rounds if other.number == chosen), None)
    if round_ is None:
        return
    if round_.action is not None and round_.action.reason:
        st.markdown(f"**Why:** {escape_markdown(round_.action.reason)}")
    if round_.action is not None and round_.action.kind == "answer":
        st.markdown(f"**Answers:** {escape_markdown(round_.action.answer)}")
    st.subheader("Evidence found", anchor=False)
    _show_evidence(store, round_.found.evidence if round_.found else (), videos, f"r{chosen}")
    for index, search in enumerate(round_.later):
        st.subheader(f"Found by a later search: {escape_markdown(search.query)}", anchor=False)
        _show_evidence(store, search.evidence, videos, f"r{chosen}_then{index}")


def _show_evidence(
    store: Store, evidence: Sequence[Evidence], videos: Mapping[str, Video], key: str
) -> None:
    if not evidence:
        st.caption("Nothing.")
    for number, piece in enumerate(evidence[:MAX_EVIDENCE]):
        show_moment(store, piece, videos, f"{key}_{number}")
    if len(evidence) > MAX_EVIDENCE:
        with st.expander(f"{len(evidence) - MAX_EVIDENCE} more"):
            for number, piece in enumerate(evidence[MAX_EVIDENCE:], start=MAX_EVIDENCE):
                show_moment(store, piece, videos, f"{key}_{number}")


def _show_round_video(
    inspected: InspectedTrajectory, videos: Mapping[str, Video], chosen: int
) -> None:
    """Play the video that the round found evidence in."""
    round_ = next((other for other in inspected.history.rounds if other.number == chosen), None)
    evidence = round_.found.evidence if round_ and round_.found else ()
    video = played_video() or (evidence[0].video if evidence else next(iter(videos), ""))
    if video in videos:
        st.caption(escape_markdown(video_title(videos, video)))
        show_player(videos[video], evidence[0].span.start_ms if evidence else 0)


def _show_ledger(inspected: InspectedTrajectory, chosen: int) -> None:
    st.subheader("Ledger after this round", anchor=False)
    changes = inspected.ledger(chosen)
    if not changes:
        st.caption("There is no plan yet.")
    for change in changes:
        _show_subtask(change)


def _show_subtask(change: SubtaskChange) -> None:
    subtask = change.subtask
    marks = f"  — **changed: {escape_markdown(', '.join(change.marks))}**" if change.marks else ""
    with st.container(border=True, key=f"subtask_{subtask.id}"):
        st.markdown(f"**{escape_markdown(subtask.id)}** {escape_markdown(subtask.text)}{marks}")
        if subtask.answer:
            st.markdown(f"→ {escape_markdown(subtask.answer)}")
        after = f", after {', '.join(subtask.depends)}" if subtask.depends else ""
        count = len(subtask.evidence)
        facts = f"{subtask.state}, attempts: {subtask.attempts}, pieces of evidence: {count}"
        st.caption(escape_markdown(f"{facts}{after}"))


def _show_calls(calls: Sequence[ShownCall]) -> None:
    st.subheader("Model calls of this round", anchor=False)
    if not calls:
        st.caption("None: no language model was called.")
    for number, call in enumerate(calls):
        _show_call(call, number)


def _show_call(call: ShownCall, number: int) -> None:
    event = call.event
    took = [
        f"{counted(event.tokens_in, 'token')} in",
        f"{event.tokens_out:,} out",
        f"{event.cost_usd:.4f} US dollars",
        format_duration(event.ms / 1000),
    ]
    with st.expander(escape_markdown(f"{event.purpose}: {event.model} · {' · '.join(took)}")):
        if event.error:
            st.error(escape_markdown(event.error))
        for index, (role, text) in enumerate(call.messages):
            st.caption(f"Prompt, {escape_markdown(role)}")
            _show_text(text, f"prompt_{number}_{index}")
        st.caption("Reply")
        _show_text(call.reply or "(none)", f"reply_{number}")


def _show_text(text: str, key: str) -> None:
    """Show text verbatim, in lines that wrap."""
    with st.container(key=key):
        st.code(text, language=None, wrap_lines=True)
