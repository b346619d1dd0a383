"""What one can do with a trajectory: replay it, go on from a round otherwise, compare, take it."""

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
from ui import address
from ui.app_state import PageState
from ui.export import as_page
from ui.faults import complain
from ui.pages import link
from ui.times import from_to
from ui.words import plain
from views.answer_lines import answer_line
from views.comparison import ComparedRound, Difference, FirstDivergence, compare_trajectories
from views.rounds import InspectedTrajectory
from views.trajectory import load_history

KEEP = "as it was"


def show_tools(desk: PageState, shown: InspectedTrajectory) -> None:
    """Replay, fork, compare and export, in tabs."""
    st.header("What if", anchor=False)
    again, otherwise, beside, take = st.tabs(["Replay", "Fork", "Compare", "Export"])
    with again:
        _replay(desk, shown)
    with otherwise:
        _fork(desk, shown)
    with beside:
        _compare(desk, shown)
    with take:
        _export(desk, shown)


def _replay(desk: PageState, shown: InspectedTrajectory) -> None:
    st.write("Runs the search again from its record: no model is asked, and nothing is written.")
    if st.button("Replay", key="replay"):
        with st.spinner("Running it again from the record ..."):
            try:
                _replayed(replay(desk.store, shown.row.id))
            except HomerError as error:
                complain(error)


def _replayed(made: Replayed) -> None:
    parted = made.divergence
    if parted is None:
        end = "" if made.ended else ", up to where it was broken off"
        st.success(
            f"{made.events} events, the same byte for byte{end}; {made.calls} model calls and "
            f"{made.searches} searches from the record, none made"
        )
        return
    kinds = [event.kind if event else "nothing" for event in (parted.recorded, parted.replayed)]
    why = f" because {parted.why}" if parted.why else ""
    told = f"Event {parted.at} is the first that differs: {kinds[0]} on record, now {kinds[1]}{why}"
    st.error(plain(told))


def _fork(desk: PageState, shown: InspectedTrajectory) -> None:
    numbers = [one.number for one in shown.history.rounds]
    if not numbers:
        st.info("There is no round yet to go on from.")
        return
    st.write(
        "Goes on from a round as a new trajectory, with something changed. What came before is "
        "taken over; models are asked from there on only."
    )
    wanted = address.number("round")
    at = numbers.index(wanted) if wanted in numbers else 0
    number = st.selectbox("From round", numbers, index=at, key=f"fork_at_{wanted}")
    was = editable(shown.history.events, number)
    edit = _edit(was, number, profile_names(desk.store.home.config))
    if edit is None:
        return
    try:
        with st.spinner("Starting ..."):
            name = desk.runs.fork(
                desk.runner(edit.profile or was.profile), shown.row.id, number, edit
            )
    except HomerError as error:
        complain(error)
        return
    st.success("A new branch was begun.")
    link("trajectory", f"Open the fork {name}", trajectory=name)
    link("trajectory", "Compare it with this one", trajectory=shown.row.id, with_=name)


def _edit(was: ForkEdit, number: int, profiles: Sequence[str]) -> ForkEdit | None:
    """The form; what was changed, once it is sent."""
    action = was.action
    with st.form(f"fork_{number}"):
        text = st.text_area(
            "Plan", plan_text(was.plan or ()), help="One subtask a line; without an id it is new."
        )
        query = st.text_input("Query", action.query if action else "")
        modes = [KEEP, *(mode.value for mode in Mode)]
        mode = st.selectbox("Mode", modes, help="How it searches in this round.")
        kept = _kept(was.evidence or ())
        profile = st.selectbox("Models", [KEEP, *profiles])
        sent = st.form_submit_button("Fork", type="primary")
    if not sent:
        return None
    try:
        plan = read_plan(text, was.plan or ())
    except HomerError as error:
        complain(error)
        return None
    return ForkEdit(
        plan=plan if plan != was.plan else None,
        action=_action(action, query, mode),
        evidence=kept if was.evidence is not None and kept != was.evidence else None,
        profile=None if profile == KEEP else profile,
    )


def _kept(found: Sequence[Evidence]) -> tuple[Evidence, ...]:
    if not found:
        return ()
    named = {f"[{e.ref}] {from_to(e.span)} {e.text[:60]}": e for e in found}
    chosen = st.multiselect("Evidence that its search finds", list(named), default=list(named))
    return tuple(e for name, e in named.items() if name in chosen)


def _action(was: Action | None, query: str, mode: str) -> Action | None:
    """The round's act where it was changed; another query or mode makes it a search."""
    before = (was.query if was else "", KEEP)
    if (query.strip(), mode) == before or not query.strip():
        return None
    wanted = Mode(mode) if mode != KEEP else (was.mode if was and was.mode else Mode.VIDEO)
    return Action(kind="search", mode=wanted, query=query.strip(), reason="changed by a person")


def _compare(desk: PageState, shown: InspectedTrajectory) -> None:
    st.write("Shows where two trajectories part: in what they did, saw and answered.")
    other = st.text_input(
        "The other trajectory", address.told("with_"), placeholder="the beginning of its id"
    ).strip()
    if not other:
        return
    try:
        one, two = load_history(desk.store, shown.row.id), load_history(desk.store, other)
    except HomerError as error:
        complain(error)
        return
    address.say(with_=two.id)
    show_difference(compare_trajectories(one, two), one.question, two.question)


def show_difference(found: Difference, a: Question, b: Question) -> None:
    """Two trajectories side by side."""
    if found.same:
        st.success("Both did and saw the same, and came to the same answer.")
    for what, parting in (("What they did", found.action), ("What they saw", found.evidence)):
        st.markdown(f"**{what}**")
        _parting(parting, seen=what.endswith("saw"))
    st.markdown("**What only one of them saw**")
    left, right = st.columns(2)
    for column, name, only in ((left, found.a, found.only_a), (right, found.b, found.only_b)):
        with column:
            _only(name, only)
    st.caption(f"Both saw {found.both} of the same things.")
    st.markdown("**What they answered**")
    for column, answer, question in zip(
        st.columns(2), (found.answer_a, found.answer_b), (a, b), strict=True
    ):
        column.write(plain(_said(answer, question)))


def _parting(parting: FirstDivergence | None, *, seen: bool) -> None:
    if parting is None:
        st.write("The same in every round.")
        return
    st.write(f"They part at round {parting.round}.")
    for column, step in zip(st.columns(2), (parting.a, parting.b), strict=True):
        column.write(plain(_step(step, seen=seen)))


def _step(step: ComparedRound | None, *, seen: bool) -> str:
    if step is None:
        return "It had ended."
    if seen:
        return " ".join(f"[{ref}]" for ref in step.seen) or "Nothing."
    if step.action is None:
        return f"{step.subtask}: nothing"
    if step.action.kind == "answer":
        return f"{step.subtask}: answers {step.action.answer}"
    return f"{step.subtask}: {step.action.mode} '{step.action.query}'"


def _only(name: str, only: Sequence[Evidence]) -> None:
    st.caption(f"Only {name}: {len(only)}")
    for piece in only[:10]:
        st.write(plain(f"{from_to(piece.span)} [{piece.ref}] {piece.text[:160]}"))
    if len(only) > 10:
        st.caption(f"and {len(only) - 10} more")


def _said(answer: Answer | None, question: Question) -> str:
    return answer_line(answer, question) if answer else "Nothing."


def _export(desk: PageState, shown: InspectedTrajectory) -> None:
    st.write("One file that opens in any browser, without Homer and without a network.")
    if st.button("Make the page", key="make_export"):
        with st.spinner("Writing ..."):
            page = as_page(desk.store, shown)
        st.download_button(
            "Download the page", page, f"trajectory-{shown.row.id}.html", "text/html"
        )
