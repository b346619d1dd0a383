"""The rounds of a trajectory: over the video's own time, one at a time, with what changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from domain.asking import Evidence
from domain.media import Video
from store.database import Store
from ui import address
from ui.evidence import show_moment, titles
from ui.marks import show_key, show_remarks
from ui.player import player, seek
from ui.timeline import TONES, Lane, TimelineBar, timeline
from ui.times import from_to, lasting
from ui.words import plain
from views.rounds import (
    InspectedTrajectory,
    ShownCall,
    SubtaskChange,
    calls_in_round,
    round_headline,
)
from views.trajectory import Round

SHOWN = 5
"""Pieces of evidence that are shown before one asks for more."""


def show_rounds(store: Store, shown: InspectedTrajectory, videos: Mapping[str, Video]) -> None:
    """The timeline, the step back and forth, and the round that the address names."""
    numbers = [0, *(one.number for one in shown.history.rounds)]
    chosen = _chosen(numbers)
    st.header("Rounds", anchor=False)
    for video in videos.values():
        _over_time(shown, video, chosen)
    chosen = _stepper(shown, numbers, chosen)
    left, right = st.columns([3, 2])
    with right:
        _player(shown, videos, chosen)
        _ledger(shown, chosen)
    with left:
        _round(store, shown, videos, chosen)
    _calls(calls_in_round(store, shown, chosen))


def _chosen(numbers: Sequence[int]) -> int:
    """The round that the address names, else the first with something in it."""
    wanted = address.number("round")
    if wanted is not None and wanted in numbers:
        return wanted
    return numbers[min(1, len(numbers) - 1)]


def _over_time(shown: InspectedTrajectory, video: Video, chosen: int) -> None:
    lanes = [_lane(one, video.id) for one in shown.history.rounds]
    if not lanes:
        return
    name = f"What each round saw of {video.title}"
    st.markdown(f"**{plain(name)}**")
    mark = str(chosen)
    picked = timeline(name, video.duration_ms, lanes, f"rounds_{video.id}", chosen=mark)
    if picked:
        number, _, start = picked.partition("@")
        seek(video.id, int(start or 0))
        _go(int(number))


def _lane(one: Round, video: str) -> Lane:
    tone = TONES[(one.number - 1) % len(TONES)]
    found = one.found.evidence if one.found else ()
    bars = [_bar(one, e, tone) for e in found if e.video == video]
    return Lane(f"Round {one.number}: {one.subtask}", bars)


def _bar(one: Round, found: Evidence, tone: str) -> TimelineBar:
    mode = one.found.mode if one.found else ""
    label = f"Round {one.number}, {mode}, {from_to(found.span)}, [{found.ref}] {found.text[:120]}"
    start, end = found.span.start_ms, found.span.end_ms
    return TimelineBar(f"{one.number}@{start}", start, end, label, found.ref, tone)


def _stepper(shown: InspectedTrajectory, numbers: Sequence[int], chosen: int) -> int:
    """Step back and forth with buttons or the arrow keys."""
    at = numbers.index(chosen)
    with st.container(horizontal=True, vertical_alignment="center", key="stepper"):
        if st.button("Back", shortcut="Left", disabled=at == 0, key="back"):
            _go(numbers[at - 1])
        if st.button("Next", shortcut="Right", disabled=at == len(numbers) - 1, key="next"):
            _go(numbers[at + 1])
        told = (
            round_headline(shown.history, chosen) if chosen else "Before the first round: the plan"
        )
        st.markdown(f"**{plain(told)}**")
        st.caption(f"Step {at + 1} of {len(numbers)}; the arrow keys go back and forth.")
    address.say(round=chosen)
    return chosen


def _go(number: int) -> None:
    address.say(round=number)
    st.rerun()


def _round(
    store: Store, shown: InspectedTrajectory, videos: Mapping[str, Video], chosen: int
) -> None:
    st.subheader("What the harness said", anchor=False)
    show_key()
    show_remarks(shown.remarks(chosen))
    one = next((r for r in shown.history.rounds if r.number == chosen), None)
    if one is None:
        return
    if one.action is not None and one.action.reason:
        st.markdown(f"**Why:** {plain(one.action.reason)}")
    if one.action is not None and one.action.kind == "answer":
        st.markdown(f"**Answers:** {plain(one.action.answer)}")
    st.subheader("What it found", anchor=False)
    _pieces(store, one.found.evidence if one.found else (), videos, f"r{chosen}")
    for nth, search in enumerate(one.later):
        st.subheader(f"What a later search found: {plain(search.query)}", anchor=False)
        _pieces(store, search.evidence, videos, f"r{chosen}_then{nth}")


def _pieces(store: Store, found: Sequence[Evidence], videos: Mapping[str, Video], key: str) -> None:
    if not found:
        st.caption("Nothing.")
    for number, piece in enumerate(found[:SHOWN]):
        show_moment(store, piece, videos, f"{key}_{number}")
    if len(found) > SHOWN:
        with st.expander(f"{len(found) - SHOWN} more"):
            for number, piece in enumerate(found[SHOWN:], start=SHOWN):
                show_moment(store, piece, videos, f"{key}_{number}")


def _player(shown: InspectedTrajectory, videos: Mapping[str, Video], chosen: int) -> None:
    """The video that the round looked at."""
    one = next((r for r in shown.history.rounds if r.number == chosen), None)
    found = one.found.evidence if one and one.found else ()
    sought = st.session_state.get("sought by player", ("", 0, 0))[0]
    name = sought or (found[0].video if found else next(iter(videos), ""))
    if name in videos:
        st.caption(plain(titles(videos, name)))
        player(videos[name], found[0].span.start_ms if found else 0)


def _ledger(shown: InspectedTrajectory, chosen: int) -> None:
    st.subheader("Ledger after this round", anchor=False)
    changes = shown.ledger(chosen)
    if not changes:
        st.caption("There is no plan yet.")
    for change in changes:
        _subtask(change)


def _subtask(change: SubtaskChange) -> None:
    one = change.subtask
    marks = f"  — **changed: {plain(', '.join(change.marks))}**" if change.marks else ""
    with st.container(border=True, key=f"subtask_{one.id}"):
        st.markdown(f"**{plain(one.id)}** {plain(one.text)}{marks}")
        if one.answer:
            st.markdown(f"→ {plain(one.answer)}")
        after = f", after {', '.join(one.depends)}" if one.depends else ""
        told = f"{one.state}, attempts: {one.attempts}, pieces of evidence: {len(one.evidence)}"
        st.caption(plain(f"{told}{after}"))


def _calls(calls: Sequence[ShownCall]) -> None:
    st.subheader("Calls to models in this round", anchor=False)
    if not calls:
        st.caption("None: no language model was asked.")
    for number, call in enumerate(calls):
        _call(call, number)


def _call(call: ShownCall, number: int) -> None:
    event = call.event
    took = [
        f"{event.tokens_in} tokens in",
        f"{event.tokens_out} out",
        f"{event.cost_usd:.4f} US dollars",
        lasting(event.ms / 1000),
    ]
    with st.expander(plain(f"{event.purpose}: {event.model} · {' · '.join(took)}")):
        if event.error:
            st.error(plain(event.error))
        for place, (role, words) in enumerate(call.messages):
            st.caption(f"Prompt, {plain(role)}")
            _words(words, f"prompt_{number}_{place}")
        st.caption("Reply")
        _words(call.reply or "(none)", f"reply_{number}")


def _words(words: str, key: str) -> None:
    """Words as they are, in lines that wrap."""
    with st.container(key=key):
        st.code(words, language=None, wrap_lines=True)
