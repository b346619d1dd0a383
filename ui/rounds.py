"""The rounds of a trajectory: on a timeline of the video, and one at a time with its changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

import streamlit as st

from domain.asking import Answer, Mode, Subtask
from domain.media import Video
from domain.people import tags_in_words
from domain.words import (
    counted,
    format_number,
    format_span,
    format_time,
    short_times,
    shortened,
    translate,
    translate_sentence,
)
from library.rounds import History, Round, ShownCall, calls_in_round, place_in_words, round_headline
from library.videos import videos_named
from ui.app_state import PageState
from ui.evidence import show_moment, video_title
from ui.formatting import escape_markdown, format_cost, format_duration, format_usage
from ui.harness_remarks import (
    ledger_changes,
    remarks_html,
    round_remarks,
    show_legend,
)
from ui.navigation import int_param, set_params
from ui.player import TONES, Lane, TimelineBar, played_video, seek, show_player, show_timeline
from ui.trajectory_tools import show_step_tools

MAX_EVIDENCE = 5
"""Pieces of evidence shown at first; an expander has the others."""


def show_rounds(state: PageState, inspected: History) -> None:
    """Draw the steps as sentences, and beside them the step that the address names."""
    store, videos = state.store, videos_named(state.store, inspected.row.question.videos)
    numbers = [0, *(round_.number for round_ in inspected.rounds)]
    # The round that the address names, else the first round.
    requested = int_param("round")
    chosen = (
        requested
        if requested is not None and requested in numbers
        else numbers[min(1, len(numbers) - 1)]
    )
    st.header(translate("Rounds"), anchor=False)
    story, step = st.columns([2, 3])
    with story:
        st.html(STORY)
        with st.container(key="story", gap="xsmall"):
            _show_step(inspected, 0, chosen)
            parts = groupby(inspected.rounds, key=lambda round_: (round_.subtask, round_.text))
            for place, ((_, text), rounds) in enumerate(parts):
                if len(inspected.plan) > 1:
                    st.caption(
                        escape_markdown(translate("Part: {text}").format(text=tags_in_words(text)))
                    )
                with st.container(key=f"branch_{place}", gap="xsmall"):
                    for round_ in rounds:
                        _show_step(inspected, round_.number, chosen)
        # Draw buttons for the round before and after; the arrow keys press them.
        index = numbers.index(chosen)
        with st.container(horizontal=True, vertical_alignment="center", key="stepper"):
            if st.button(translate("Back"), shortcut="Left", disabled=index == 0, key="back"):
                _open_round(numbers[index - 1])
            if st.button(
                translate("Next"), shortcut="Right", disabled=index == len(numbers) - 1, key="next"
            ):
                _open_round(numbers[index + 1])
            st.caption(
                translate("Step {index} of {count}").format(index=index + 1, count=len(numbers))
            )
        set_params(round=chosen)
        shown = next((one for one in inspected.rounds if one.number == chosen), None)
        evidence = shown.evidence if shown else ()
        video = played_video() or (evidence[0].video if evidence else next(iter(videos), ""))
        if video in videos:
            st.caption(escape_markdown(video_title(videos, video)))
            show_player(videos[video], evidence[0].span.start_ms if evidence else 0)
    with step:
        _show_round(state, inspected, videos, chosen)
    for one in videos.values():
        _show_timeline(inspected, one, chosen)
    with st.expander(translate("What happened in this step")):
        show_legend()
        if remarks := round_remarks(inspected, chosen):
            st.html(remarks_html(remarks))
        else:
            st.caption(translate("No remarks."))
        st.markdown(f"**{translate('Parts of the question after this step')}**")
        changes = ledger_changes(inspected, chosen)
        if not changes:
            st.caption(translate("There is no plan yet."))
        for subtask, marks in changes:
            _show_subtask(subtask, marks)
        calls = calls_in_round(store, inspected, chosen)
        st.markdown(f"**{translate('Model calls of this step')}**")
        if not calls:
            st.caption(translate("None: no language model was called."))
        for number, call in enumerate(calls):
            _show_call(call, number)


def _show_step(inspected: History, number: int, chosen: int) -> None:
    if number:
        sentence = round_headline(inspected, number)
    else:
        plan = counted(len(inspected.plan), "part")
        sentence = translate("Before the first round: the plan has {plan}").format(plan=plan)
    pressed = st.button(
        escape_markdown(sentence),
        key=f"step_{number}",
        type="secondary" if number == chosen else "tertiary",
        icon=":material/arrow_right:" if number == chosen else None,
        wrap=True,
    )
    if pressed and number != chosen:
        _open_round(number)


def _show_timeline(inspected: History, video: Video, chosen: int) -> None:
    lanes = []
    for round_ in inspected.rounds:
        tone, bars = TONES[(round_.number - 1) % len(TONES)], []
        for piece in round_.evidence:
            if piece.video == video.id:
                place = translate("Round {number}, {time}").format(
                    number=round_.number, time=format_span(piece.span)
                )
                label = f"{place}: {shortened(tags_in_words(piece.text))}"
                at, end = piece.span.start_ms, piece.span.end_ms
                bars.append(
                    TimelineBar(f"{round_.number}@{at}", at, end, label, format_time(at), tone)
                )
        lanes.append(Lane(translate("Round {number}").format(number=round_.number), bars))
    if not any(lane.spans for lane in lanes):
        return
    name = translate("Evidence of each round in {title}").format(title=video.title)
    st.markdown(f"**{escape_markdown(name)}**")
    current = str(chosen)
    picked = show_timeline(name, video.duration_ms, lanes, f"rounds_{video.id}", chosen=current)
    if picked:
        number, _, start = picked.partition("@")
        seek(video.id, int(start or 0))
        _open_round(int(number))


def _open_round(number: int) -> None:
    set_params(round=number)
    st.rerun()


def _show_round(
    state: PageState, inspected: History, videos: Mapping[str, Video], chosen: int
) -> None:
    """Draw the input, the results and the decision of a step, and what can be done from it."""
    store = state.store
    round_ = next((other for other in inspected.rounds if other.number == chosen), None)
    if round_ is None:
        st.subheader(translate("The plan"), anchor=False)
        for subtask in inspected.plan:
            st.markdown(f"- {escape_markdown(tags_in_words(subtask.text))}")
        return
    cited = {citation.ref for citation in (inspected.row.answer or NO_ANSWER).citations}
    # Draw what the step was given: the part of the question, the query, the reason; its cost.
    st.subheader(translate("Input"), anchor=False)
    st.markdown(escape_markdown(tags_in_words(round_.text)))
    action = round_.action
    if action is not None and action.query:
        place = place_in_words(action.mode or Mode.VIDEO)
        st.markdown(
            translate("**Query:** {query}").format(
                query=escape_markdown(tags_in_words(action.query))
            )
        )
        st.caption(escape_markdown(translate("Searched {place}").format(place=place)))
    if action is not None and action.reason:
        st.markdown(
            translate("**Why:** {reason}").format(
                reason=escape_markdown(tags_in_words(action.reason))
            )
        )
    if round_.calls:
        read = sum(call.tokens_in for call in round_.calls)
        written = sum(call.tokens_out for call in round_.calls)
        cost = sum(call.cost_usd for call in round_.calls)
        seconds = sum(call.ms for call in round_.calls) / 1000
        used = translate("{usage}, {read} tokens went in").format(
            usage=format_usage(read + written, cost), read=format_number(read)
        )
        facts = f"{used}, {format_duration(seconds)}"
        st.caption(escape_markdown(facts))
    show_step_tools(state, inspected, chosen)
    st.subheader(translate("Results"), anchor=False)
    # Draw pieces of evidence, the first ones unfolded; those that the answer cites are marked.
    evidence = round_.evidence
    key = f"r{chosen}"
    if not evidence:
        st.caption(translate("Nothing."))
    for number, piece in enumerate(evidence[:MAX_EVIDENCE]):
        show_moment(store, piece, videos, f"{key}_{number}", cited=piece.ref in cited)
    if len(evidence) > MAX_EVIDENCE:
        with st.expander(translate("{count} more").format(count=len(evidence) - MAX_EVIDENCE)):
            for number, piece in enumerate(evidence[MAX_EVIDENCE:], start=MAX_EVIDENCE):
                show_moment(store, piece, videos, f"{key}_{number}", cited=piece.ref in cited)
    st.subheader(translate("Decision"), anchor=False)
    st.markdown(escape_markdown(_decision(round_)))


STORY = """<style>
.st-key-story button { justify-content: start; text-align: start; }
.st-key-story [class*=st-key-branch_] { padding-inline-start: .75rem;
  border-inline-start: 2px solid #9ca3af; }
</style>"""
"""Sentences that are buttons begin at one edge; those of a part are indented."""
NO_ANSWER = Answer(text="", confidence=0)
"""Stands for the answer of a search that has none: nothing is cited."""


def _decision(round_: Round) -> str:
    """Return what followed from a step, in sentences."""
    if round_.action is not None and round_.action.kind == "answer":
        return translate("Answers: {answer}").format(
            answer=short_times(tags_in_words(round_.action.answer))
        )
    if round_.assessed is None:
        return translate("Continues.")
    resolved = [one.answer for one in round_.assessed.resolved]
    new = translate("{share} of what was found is new.").format(
        share=format_number(round_.assessed.increment, ".0%")
    )
    if resolved:
        answer = short_times("; ".join(map(tags_in_words, resolved)))
        return f"{new} " + translate("Answers this part: {answer}").format(answer=answer)
    return f"{new} {translate('Continues searching.')}"


def _show_subtask(subtask: Subtask, changes: Sequence[str]) -> None:
    marks = (
        translate("  — **changed: {marks}**").format(marks=escape_markdown(", ".join(changes)))
        if changes
        else ""
    )
    with st.container(border=True, key=f"subtask_{subtask.id}"):
        text = escape_markdown(tags_in_words(subtask.text))
        st.markdown(f"**{escape_markdown(subtask.id)}** {text}{marks}")
        if subtask.answer:
            st.markdown(f"→ {escape_markdown(tags_in_words(subtask.answer))}")
        after = (
            translate(", after {parts}").format(parts=", ".join(subtask.depends))
            if subtask.depends
            else ""
        )
        found = counted(len(subtask.evidence), "piece of evidence")
        facts = f"{translate(subtask.state)}, {counted(subtask.attempts, 'attempt')}, {found}"
        st.caption(escape_markdown(f"{facts}{after}"))


def _show_call(call: ShownCall, number: int) -> None:
    event = call.event
    took = [
        translate("{tokens} in").format(tokens=counted(event.tokens_in, "token")),
        translate("{tokens} out").format(tokens=format_number(event.tokens_out)),
    ]
    took += [format_cost(event.cost_usd)] if event.cost_usd else []
    took.append(format_duration(event.ms / 1000))
    with st.expander(escape_markdown(f"{event.purpose}: {event.model} · {' · '.join(took)}")):
        if event.error:
            st.error(escape_markdown(translate_sentence(event.error)))
        for index, (role, text) in enumerate(call.messages):
            st.caption(translate("Prompt, {role}").format(role=escape_markdown(role)))
            _show_text(text, f"prompt_{number}_{index}")
        st.caption(translate("Reply"))
        _show_text(call.reply or translate("(none)"), f"reply_{number}")


def _show_text(text: str, key: str) -> None:
    with st.container(key=key):
        st.code(text, language=None, wrap_lines=True)
