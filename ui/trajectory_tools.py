"""Tools of the trajectory page: replay, fork, compare, export."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from domain.asking import Action, Answer, Evidence, Mode, Question
from domain.errors import HomerError
from domain.trajectory import ForkEdit
from graphs.edits import plan_text, read_plan
from graphs.forks import editable
from graphs.replay import Replayed, replay
from models.profile import profile_names
from strategies.registry import find_strategy
from ui.answer import POLL_S
from ui.app_state import PageState, page_state
from ui.errors import show_error, show_errors
from ui.formatting import escape_markdown, format_span
from ui.navigation import page_link, set_params, text_param
from ui.trajectory_export import render_page
from views.answer_lines import answer_line
from views.comparison import ComparedRound, Difference, FirstDivergence, compare_trajectories
from views.rounds import InspectedTrajectory, round_headline
from views.trajectory import History, load_history
from views.words import counted

UNCHANGED = "unchanged"
_STARTED_FORK = "started fork"
REPLAY = "Replays the search from its record: no model is called, and nothing is written."


def show_step_tools(state: PageState, inspected: InspectedTrajectory, number: int) -> None:
    """Draw what can be done from a step: replay the search, or rerun it with changes."""
    if st.button("Replay", key="replay", icon=":material/replay:", help=REPLAY):
        with st.spinner("Replaying ..."):
            try:
                _show_replay_result(replay(state.store, inspected.row.id))
            except HomerError as error:
                show_error(error)
    original = editable(inspected.history.events, number)
    with st.expander("Rerun from this step with changes", icon=":material/fork_right:"):
        tools = [tool.name for tool in find_strategy(inspected.row.machine).tools]
        edit = _edit_form(original, number, profile_names(state.store.home.config), tools)
    if edit is not None:
        _start_fork(state, inspected, number, edit, edit.profile or original.profile)
    _show_started_fork(inspected, number)


def show_tools(state: PageState, inspected: InspectedTrajectory) -> None:
    """Draw the comparison with another search, and the export."""
    st.header("Compare and export", anchor=False)
    default = "Compare" if text_param("with_") else None
    compare_tab, export_tab = st.tabs(["Compare", "Export"], default=default)
    with compare_tab:
        _show_compare(state, inspected)
    with export_tab:
        _show_export(state, inspected)


def _show_replay_result(replayed: Replayed) -> None:
    divergence = replayed.divergence
    if divergence is None:
        end = "" if replayed.ended else ", up to where it was interrupted"
        st.success(f"Replay matches exactly ({counted(replayed.events, 'event')}){end}.")
        return
    kinds = [
        event.kind if event else "nothing" for event in (divergence.recorded, divergence.replayed)
    ]
    why = f" because {divergence.why}" if divergence.why else ""
    message = (
        f"Event {divergence.at} is the first that differs: {kinds[0]} on record, "
        f"now {kinds[1]}{why}"
    )
    st.error(escape_markdown(message))


def _start_fork(
    state: PageState,
    inspected: InspectedTrajectory,
    number: int,
    edit: ForkEdit,
    profile: str | None,
) -> None:
    try:
        with st.spinner("Starting ..."):
            name = state.runs.fork(state.runner(profile), inspected.row.id, number, edit)
    except HomerError as error:
        show_error(error)
        return
    st.session_state[_STARTED_FORK] = (inspected.row.id, number, name)


def _show_started_fork(inspected: InspectedTrajectory, number: int) -> None:
    """Link the last fork that was started from this step.

    It is held in the session: the player reruns the page whenever it reports its time, and
    a form is sent in one run only. Not in the expander, which closes when what is above it changes.
    """
    of, step, name = st.session_state.get(_STARTED_FORK, ("", 0, ""))
    if (of, step) != (inspected.row.id, number):
        return
    st.success("The fork has started.")
    page_link("trajectory", "Open the fork", trajectory=name)
    page_link("trajectory", "Compare it with this one", trajectory=inspected.row.id, with_=name)


def _edit_form(
    original: ForkEdit, number: int, profiles: Sequence[str], tools: Sequence[str]
) -> ForkEdit | None:
    """Draw the form of a fork; return the edit once it is sent."""
    action = original.action
    with st.form(f"fork_{number}"):
        text = st.text_area(
            "Plan",
            plan_text(original.plan or ()),
            help="One subtask per line; one without an id is new.",
        )
        query = st.text_input("Query", action.query if action else "")
        mode = st.selectbox("Mode", [UNCHANGED, *tools], help="The mode of this round's search.")
        evidence = _select_evidence(original.evidence or ())
        profile = st.selectbox("Models", [UNCHANGED, *profiles])
        sent = st.form_submit_button("Fork", type="primary")
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
    labelled = {
        f"[{piece.ref}] {format_span(piece.span)} {piece.text[:60]}": piece for piece in found
    }
    chosen = st.multiselect(
        "Evidence that the search returns", list(labelled), default=list(labelled)
    )
    return tuple(piece for name, piece in labelled.items() if name in chosen)


def _edited_action(
    original: Action | None, query: str, mode: str, tools: Sequence[str]
) -> Action | None:
    """Return the action if it was edited; another query or mode makes it a search.

    The other arguments of an unchanged tool stay.
    """
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
        arguments=original.arguments if original and chosen == former else {},
        reason="changed by a person",
    )


def _show_compare(state: PageState, inspected: InspectedTrajectory) -> None:
    st.write(
        "Shows where two searches differ: in their steps, in what they found and in their answers."
    )
    other = st.text_input(
        "The other trajectory", text_param("with_"), placeholder="the beginning of its id"
    ).strip()
    if not other:
        return
    try:
        first, second = (
            load_history(state.store, inspected.row.id),
            load_history(state.store, other),
        )
    except HomerError as error:
        show_error(error)
        return
    set_params(with_=second.id)
    if any(state.runs.running(one.id) for one in (first, second)):
        _poll_comparison(first.id, second.id)
    else:
        _show_comparison(first, second)


@st.fragment(run_every=POLL_S)
def _poll_comparison(first: str, second: str) -> None:
    """Draw the comparison anew as long as one of both is at work."""
    show_errors(lambda: _follow_comparison(first, second))


def _follow_comparison(first: str, second: str) -> None:
    state = page_state()
    if not any(state.runs.running(name) for name in (first, second)):
        st.rerun()
    st.caption("A search is still at work.")
    _show_comparison(load_history(state.store, first), load_history(state.store, second))


def _show_comparison(first: History, second: History) -> None:
    _show_both(first, second)
    show_difference(compare_trajectories(first, second), first.question, second.question)


def _show_both(first: History, second: History) -> None:
    """Draw the rounds of both in two columns, and mark those that differ."""
    left, right = st.columns(2)
    left.markdown("**This search**")
    right.markdown("**The other search**")
    for number in range(1, max(len(first.rounds), len(second.rounds)) + 1):
        lines = [
            round_headline(history, number) if number <= len(history.rounds) else "It had ended."
            for history in (first, second)
        ]
        mark = "" if lines[0] == lines[1] else "≠ "
        for column, line in zip(st.columns(2), lines, strict=True):
            column.markdown(f"{mark}{escape_markdown(line)}")


def show_difference(difference: Difference, a: Question, b: Question) -> None:
    """Draw the comparison of two trajectories."""
    if difference.same:
        st.success("Both have the same actions, evidence and answer.")
    for heading, divergence in (
        ("Actions", difference.action),
        ("Evidence", difference.evidence),
    ):
        st.markdown(f"**{heading}**")
        _show_divergence(divergence, evidence=heading == "Evidence")
    st.markdown("**Evidence of only one of them**")
    left, right = st.columns(2)
    for column, name, only in (
        (left, difference.a, difference.only_a),
        (right, difference.b, difference.only_b),
    ):
        with column:
            _show_only(name, only)
    st.caption(f"Found by both: {counted(difference.both, 'moment')}")
    st.markdown("**Answers**")
    for column, answer, question in zip(
        st.columns(2), (difference.answer_a, difference.answer_b), (a, b), strict=True
    ):
        column.write(escape_markdown(_answer_text(answer, question)))


def _show_divergence(divergence: FirstDivergence | None, *, evidence: bool) -> None:
    if divergence is None:
        st.write("The same in every round.")
        return
    st.write(f"They diverge at round {divergence.round}.")
    for column, step in zip(st.columns(2), (divergence.a, divergence.b), strict=True):
        column.write(escape_markdown(_step_text(step, evidence=evidence)))


def _step_text(step: ComparedRound | None, *, evidence: bool) -> str:
    if step is None:
        return "It had ended."
    if evidence:
        return " ".join(f"[{ref}]" for ref in step.seen) or "Nothing."
    if step.action is None:
        return f"{step.subtask}: nothing"
    if step.action.kind == "answer":
        return f"{step.subtask}: answers {step.action.answer}"
    return f"{step.subtask}: {step.action.mode} '{step.action.query}'"


def _show_only(name: str, only: Sequence[Evidence]) -> None:
    st.caption(f"Only {name}: {len(only)}")
    for piece in only[:10]:
        st.write(escape_markdown(f"{format_span(piece.span)} [{piece.ref}] {piece.text[:160]}"))
    if len(only) > 10:
        st.caption(f"and {len(only) - 10} more")


def _answer_text(answer: Answer | None, question: Question) -> str:
    return answer_line(answer, question) if answer else "Nothing."


def _show_export(state: PageState, inspected: InspectedTrajectory) -> None:
    st.write("One file that opens in any browser, without Homer and without a network.")
    if st.button("Make the page", key="make_export"):
        with st.spinner("Writing ..."):
            page = render_page(state.store, inspected)
        st.download_button(
            "Download the page", page, f"trajectory-{inspected.row.id}.html", "text/html"
        )
