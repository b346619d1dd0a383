"""Tools of the trajectory page: replay, fork, compare, and export as one HTML file."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from contextlib import suppress
from html import escape
from pathlib import Path
from string import Template

import streamlit as st

from domain.asking import Action, Citation, Evidence, Mode, Subtask
from domain.errors import HomerError
from domain.media import Video
from domain.people import tags_in_words
from domain.trajectory import Forked, ForkEdit
from domain.words import (
    counted,
    format_number,
    format_span,
    format_time,
    marked,
    reader,
    shortened,
    translate,
    translate_sentence,
)
from graphs.forks import editable, plan_text, read_plan
from graphs.replay import replay
from library.answers import answer_line
from library.moments import frame_at
from library.rounds import (
    History,
    ShownCall,
    calls_in_round,
    compare_trajectories,
    forks_among,
    load_history,
    place_in_words,
    round_headline,
)
from library.trajectories import page_of_trajectories
from library.videos import videos_named
from models.profile import profile_names
from store.database import Store
from store.queries.trajectories import StoredTrajectory
from strategies.registry import find_strategy
from ui.answer import POLL_S
from ui.app_state import PageState, page_state, show_error, show_errors
from ui.formatting import escape_markdown, format_cost, format_date, format_duration, format_usage
from ui.harness_remarks import (
    changed_parts,
    ledger_changes,
    remarks_html,
    round_remarks,
    state_in_words,
)
from ui.navigation import page_link, set_params, text_param
from ui.sharing import show_sharing

UNCHANGED = marked("unchanged")
MAX_OTHERS = 50
"""Searches to choose from."""
MAX_CHOICE_CHARS = 60
"""Characters of a text that is chosen."""
MAX_ONLY = 10
"""Moments shown that only one of two searches found."""
MAX_TIMES = 5
"""Moments of a round whose times are shown."""
MAX_LINE_CHARS = 160
"""Characters of each."""
_STARTED_FORK = "started fork"
REPLAY = marked("Replays the search from its record: no model is called, and nothing is written.")


def show_step_tools(state: PageState, inspected: History, number: int) -> None:
    """Draw what can be done from a step: replay the search, or rerun it with changes."""
    if st.button(
        translate("Replay"), key="replay", icon=":material/replay:", help=translate(REPLAY)
    ):
        with st.spinner(translate("Replaying ...")), show_errors():
            replayed = replay(state.store, inspected.row.id)
            divergence = replayed.divergence
            if divergence is None:
                end = "" if replayed.ended else translate(", up to where it was interrupted")
                st.success(
                    translate("Replay matches exactly ({events}){end}.").format(
                        events=counted(replayed.events, "event"), end=end
                    )
                )
            else:
                kinds = [
                    event.kind if event else translate("nothing")
                    for event in (divergence.recorded, divergence.replayed)
                ]
                why = (
                    translate(" because {why}").format(why=divergence.why) if divergence.why else ""
                )
                message = translate(
                    "Event {number} is the first that differs: {recorded} on record, "
                    "now {replayed}{why}"
                ).format(number=divergence.at, recorded=kinds[0], replayed=kinds[1], why=why)
                st.error(escape_markdown(message))
    original = editable(inspected.events, number)
    with st.expander(translate("Rerun from this step with changes"), icon=":material/fork_right:"):
        tools = [tool.name for tool in find_strategy(inspected.row.machine).tools]
        edit = _edit_form(original, number, profile_names(state.store.home.config), tools)
    if edit is not None:
        with show_errors(), st.spinner(translate("Starting ...")):
            runner = state.runner(edit.profile or original.profile)
            fork = state.runs.fork(runner, inspected.row.id, number, edit)
            st.session_state[_STARTED_FORK] = (inspected.row.id, number, fork)
    # Link the last fork that was started from this step. It is held in the session: the player
    # reruns the page whenever it reports its time, and a form is sent in one run only. Not in the
    # expander, which closes when what is above it changes.
    of, step, name = st.session_state.get(_STARTED_FORK, ("", 0, ""))
    if (of, step) != (inspected.row.id, number):
        return
    st.success(translate("The fork has started."))
    page_link("trajectory", translate("Open the fork"), trajectory=name)
    page_link(
        "trajectory", translate("Compare it with this one"), trajectory=inspected.row.id, with_=name
    )


def show_tools(state: PageState, inspected: History) -> None:
    """Draw the comparison with another search, the export and the links."""
    st.header(translate("Compare, export and share"), anchor=False)
    default = translate("Compare") if text_param("with_") else None
    compare_tab, export_tab, share_tab = st.tabs(
        [translate("Compare"), translate("Export"), translate("Share")], default=default
    )
    with compare_tab:
        _show_compare(state, inspected)
    with export_tab:
        st.write(
            translate("One file that opens in any browser, without Homer and without a network.")
        )
        if st.button(translate("Make the page"), key="make_export"):
            with st.spinner(translate("Writing ...")):
                page = render_page(state.store, inspected)
            st.download_button(
                translate("Download the page"),
                page,
                f"trajectory-{inspected.row.id}.html",
                "text/html",
            )
    with share_tab:
        if not state.store.may_change:
            st.caption(translate("You may look and ask here; somebody else can share it."))
        elif inspected.row.answer is None:
            st.caption(translate("There is no answer to share."))
        else:
            show_sharing(state.store, inspected.row.id)


def _edit_form(
    original: ForkEdit, number: int, profiles: Sequence[str], tools: Sequence[str]
) -> ForkEdit | None:
    """Draw the form of a fork; return the edit once it is sent."""
    action = original.action
    with st.form(f"fork_{number}"):
        text = st.text_area(
            translate("Plan"),
            plan_text(original.plan or ()),
            help=translate("One part of the question per line; one without a number is new."),
        )
        query = st.text_input(translate("Query"), action.query if action else "")
        mode = st.selectbox(
            translate("Search"),
            [UNCHANGED, *tools],
            format_func=lambda one: translate(one) if one == UNCHANGED else place_in_words(one),
        )
        evidence = _select_evidence(original.evidence or ())
        profile = st.selectbox(
            translate("Models"),
            [UNCHANGED, *profiles],
            format_func=lambda one: translate(one) if one == UNCHANGED else one,
        )
        sent = st.form_submit_button(translate("Fork"), type="primary")
    if not sent:
        return None
    try:
        plan = read_plan(text, original.plan or ())
    except HomerError as error:
        show_error(error)
        return None
    return ForkEdit(
        plan=plan if plan != original.plan else None,
        action=_edited_action(action, query, mode, tools),
        evidence=evidence
        if original.evidence is not None and evidence != original.evidence
        else None,
        profile=None if profile == UNCHANGED else profile,
    )


def _select_evidence(found: Sequence[Evidence]) -> tuple[Evidence, ...]:
    if not found:
        return ()
    places = list(range(len(found)))
    chosen = st.multiselect(
        translate("Results of the search"),
        places,
        default=places,
        format_func=lambda place: _evidence_line(found[place], MAX_CHOICE_CHARS),
        placeholder=translate("Choose results"),
    )
    return tuple(piece for place, piece in enumerate(found) if place in chosen)


def _evidence_line(piece: Evidence, width: int) -> str:
    return f"{format_span(piece.span)} {shortened(tags_in_words(piece.text), width)}"


def _edited_action(
    original: Action | None, query: str, mode: str, tools: Sequence[str]
) -> Action | None:
    """Return the action if it was edited; another query or mode makes it a search."""
    before = (original.query if original else "", UNCHANGED)
    if (query.strip(), mode) == before or not query.strip():
        return None
    former = original.mode if original else None
    default = former or (Mode.VIDEO if Mode.VIDEO in tools else tools[0])
    chosen = default if mode == UNCHANGED else mode
    return Action(
        kind="search",
        mode=chosen,
        query=query.strip(),
        # The other arguments of an unchanged tool stay.
        arguments=original.arguments if original and chosen == former else {},
        reason="changed by a person",
    )


def _show_compare(state: PageState, inspected: History) -> None:
    st.write(
        translate(
            "Shows where two searches differ: in their steps, in what they found and in "
            "their answers."
        )
    )
    # Draw the choice of another search: that of the address, then the newest. Searches for the
    # same question come first.
    row = inspected.row
    requested = []
    if name := text_param("with_"):
        with show_errors():
            requested.append(load_history(state.store, name).row)
    newest, _ = page_of_trajectories(state.store, MAX_OTHERS)
    # Those with the same question first.
    others = sorted(newest, key=lambda other: other.question != row.question)
    offered = [*requested, *(other for other in others if other.id != row.id)]
    rows = {other.id: other for other in offered}
    forks = forks_among(state.store, list(rows))
    other = st.selectbox(
        translate("The other search"),
        list(rows),
        index=0 if requested else None,
        format_func=lambda name: _search_line(rows[name], forks.get(name)),
        placeholder=translate("Choose one"),
    )
    if other is None:
        return
    if other != text_param("with_"):
        set_params(with_=other)
        st.rerun()
    first, second = inspected, load_history(state.store, other)
    if any(state.runs.running(one.row.id) for one in (first, second)):
        _poll_comparison(first.row.id, second.row.id)
    else:
        _show_comparison(first, second)


def _search_line(row: StoredTrajectory, fork: Forked | None) -> str:
    changed = (
        translate(", forked at round {number}: {change}").format(
            number=fork.at, change=changed_parts(fork)
        )
        if fork
        else ""
    )
    text = shortened(row.question.text, MAX_CHOICE_CHARS)
    return f"{text} ({format_date(row.started_at)}{changed})"


@st.fragment(run_every=POLL_S)
def _poll_comparison(first: str, second: str) -> None:
    """Draw the comparison anew as long as one of both is at work."""
    with show_errors():
        state = page_state()
        if not any(state.runs.running(name) for name in (first, second)):
            st.rerun()
        st.caption(translate("A search is still at work."))
        _show_comparison(load_history(state.store, first), load_history(state.store, second))


def _show_comparison(first: History, second: History) -> None:
    """Draw two searches in two columns; what differs is marked."""
    found = compare_trajectories(first, second)
    parted = [one.round for one in (found.action, found.evidence) if one is not None]
    if found.same:
        st.write(translate("Both have the same steps, results and answer."))
    elif not parted:
        st.write(translate("Both have the same steps and results. The answers differ."))
    else:
        st.write(translate("They differ from round {number} on.").format(number=min(parted)))
    _show_pair(f"**{translate('This search')}**", f"**{translate('The other search')}**")
    for number in range(1, max(len(first.rounds), len(second.rounds)) + 1):
        lines = [_round_line(history, number) for history in (first, second)]
        found_first, found_second = (
            [piece.ref for one in history.rounds[number - 1 : number] for piece in one.evidence]
            for history in (first, second)
        )
        same = lines[0] == lines[1] and found_first == found_second
        _show_compared(*lines, same=same)
    answers = [
        answer_line(one.row.answer, one.row.question) if one.row.answer else translate("Nothing.")
        for one in (first, second)
    ]
    _show_compared(
        *(translate("Answer: {answer}").format(answer=answer) for answer in answers),
        same=found.same_answer,
    )
    st.markdown(f"**{translate('Found by only one of them')}**")
    for column, only in zip(st.columns(2), (found.only_a, found.only_b), strict=True):
        with column:
            for piece in only[:MAX_ONLY]:
                st.write(escape_markdown(_evidence_line(piece, MAX_LINE_CHARS)))
            if len(only) > MAX_ONLY:
                st.caption(translate("and {count} more").format(count=len(only) - MAX_ONLY))
            if not only:
                st.caption(translate("Nothing."))
    st.caption(translate("Found by both: {moments}").format(moments=counted(found.both, "moment")))


def _round_line(history: History, number: int) -> str:
    """Return a round as a sentence, with when the first moments are that it found."""
    if number > len(history.rounds):
        return translate("It had ended.")
    found = history.rounds[number - 1].found
    times = [format_time(piece.span.start_ms) for piece in found.evidence] if found else []
    more = ", ..." if len(times) > MAX_TIMES else ""
    at = (
        translate(" (at {times}{more})").format(times=", ".join(times[:MAX_TIMES]), more=more)
        if times
        else ""
    )
    return f"{round_headline(history, number)}{at}"


def _show_compared(first: str, second: str, *, same: bool) -> None:
    """Draw what two searches did beside each other; a frame and a sign mark what differs."""
    mark = "" if same else "≠ "
    with st.container(border=not same):
        _show_pair(*(f"{mark}{escape_markdown(text)}" for text in (first, second)))


def _show_pair(first: str, second: str) -> None:
    for column, text in zip(st.columns(2), (first, second), strict=True):
        column.markdown(text)


# Export.


TEMPLATE = Path(__file__).parent / "components" / "export.page"


def render_page(store: Store, inspected: History) -> str:
    """Render the page, with all text from outside escaped."""
    row = inspected.row
    videos = videos_named(store, row.question.videos)
    numbers = [0, *(round_.number for round_ in inspected.rounds)]
    cited = row.answer.citations if row.answer else ()
    facts = [state_in_words(row.state), translate("models {profile}").format(profile=row.profile)]
    if row.tokens:
        facts.append(format_usage(row.tokens, inspected.cost_usd))
    facts += [format_duration(row.seconds), format_date(row.started_at)]
    return Template(TEMPLATE.read_text("utf-8")).substitute(
        language=reader.get().code,
        lanes_name=translate("Evidence of each round"),
        title=escape(f"Homer: {row.question.text}"),
        question=escape(row.question.text),
        answer=escape(
            answer_line(row.answer, row.question) if row.answer else translate("No answer.")
        ),
        facts=escape(" · ".join(facts)),
        moments="".join(_moment(store, round_, videos) for round_ in cited),
        lanes="".join(_video_lanes(inspected, video) for video in videos.values()),
        rounds="".join(_round(store, inspected, videos, number) for number in numbers),
    )


def _video_lanes(inspected: History, video: Video) -> str:
    length, rows = max(1, video.duration_ms), ""
    for round_ in inspected.rounds:
        bars = ""
        for span in (piece.span for piece in round_.evidence if piece.video == video.id):
            left, width = 100 * span.start_ms / length, 100 * span.length_ms / length
            style = f"left:{left:.3f}%;width:{width:.3f}%"
            label = escape(format_span(span), quote=True)
            bars += f'<span class="bar" style="{style}" title="{label}"></span>'
        name = translate("Round {number}: {text}").format(
            number=round_.number, text=_isolated(tags_in_words(round_.text))
        )
        lane = f'<a href="#round-{round_.number}">{name}</a><div>{bars}</div>'
        rows += f'<div class="lane">{lane}</div>'
    first, last = format_time(0), format_time(video.duration_ms)
    ends = f'<div class="ends"><span>{first}</span><span>{last}</span></div>'
    return f'<h3 dir="auto">{escape(video.title)}</h3>{rows}{ends}'


def _round(store: Store, inspected: History, videos: Mapping[str, Video], number: int) -> str:
    round_ = next((other for other in inspected.rounds if other.number == number), None)
    headline = (
        round_headline(inspected, number)
        if round_
        else translate("Before the first round: the plan")
    )
    ledger, changes = "", ledger_changes(inspected, number)
    if changes:
        heading = translate("Parts of the question")
        subtasks = "".join(_subtask(subtask, marks) for subtask, marks in changes)
        ledger = f"<h3>{heading}</h3><ul>{subtasks}</ul>"
    parts = [
        f'<section id="round-{number}"><h2 dir="auto">{escape(headline)}</h2>',
        remarks_html(round_remarks(inspected, number)),
        "".join(_moment(store, piece, videos) for piece in (round_.evidence if round_ else ())),
        ledger,
        "".join(_call(call) for call in calls_in_round(store, inspected, number)),
        "</section>",
    ]
    return "".join(parts)


def _moment(store: Store, item: Citation | Evidence, videos: Mapping[str, Video]) -> str:
    title = videos[item.video].title if item.video in videos else translate("a deleted video")
    score = (
        translate("match {score}").format(score=format_number(item.score, ".2f"))
        if isinstance(item, Evidence)
        else ""
    )
    head = escape(f"{format_span(item.span)} {title}")
    frame, image = frame_at(store, item.video, item.span.start_ms, item.ref), ""
    if frame is not None:
        with suppress(HomerError, OSError):
            data = base64.b64encode(store.blobs.get(frame.blob)).decode()
            alt = translate("Frame of the video at {time}").format(time=format_span(frame.span))
            image = f'<img alt="{alt}" src="data:image/jpeg;base64,{data}">'
    return (
        f'<div class="moment">{image}<strong dir="auto">{head}</strong>'
        f'<p dir="auto">{escape(tags_in_words(item.full_text))}</p>'
        f'<span class="small">{score}</span></div>'
    )


def _subtask(subtask: Subtask, changes: Sequence[str]) -> str:
    changed = translate("changed: {marks}").format(marks=", ".join(changes))
    marks = f' <span class="changed">{escape(changed)}</span>'
    answer = f" → {_isolated(tags_in_words(subtask.answer))}" if subtask.answer else ""
    attempts = counted(subtask.attempts, "attempt")
    facts = f"{_isolated(tags_in_words(subtask.text))} ({translate(subtask.state)}, {attempts})"
    return f'<li dir="auto">{facts}{answer}{marks if changes else ""}</li>'


def _isolated(text: str) -> str:
    """Isolate text, so that it cannot change the writing direction of what follows."""
    return f"<bdi>{escape(text)}</bdi>"


def _call(call: ShownCall) -> str:
    event = call.event
    cost = f", {format_cost(event.cost_usd)}" if event.cost_usd else ""
    took = translate("{tokens} in, {written} out{cost}").format(
        tokens=counted(event.tokens_in, "token"),
        written=format_number(event.tokens_out),
        cost=cost,
    )
    head = escape(f"{event.purpose}: {event.model}, {took}, {format_duration(event.ms / 1000)}")
    blocks = [(translate("Prompt, {role}").format(role=role), text) for role, text in call.messages]
    if event.error:
        blocks.append((translate("Error"), translate_sentence(event.error)))
    blocks.append((translate("Reply"), call.reply))
    texts = "".join(
        f'<p class="small">{escape(name)}</p><pre dir="auto">{escape(text)}</pre>'
        for name, text in blocks
    )
    return f"<details><summary>{head}</summary>{texts}</details>"
