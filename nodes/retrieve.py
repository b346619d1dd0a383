"""Retrieve: the search is made, and what it found is written down."""

from __future__ import annotations

from domain import faults
from domain.asking import Action, Mode
from domain.errors import HomerError, InputError
from domain.trajectory import Neighbour, Retrieved
from memory.retrieval.result import Retrieval, UnknownLabel
from nodes.desk import Desk
from nodes.state import Focus, State, action_of, focus_of, plain, view_of


def retrieve(state: State, desk: Desk) -> State:
    """Search in the action's mode, from the focus; the focus may move."""
    action = action_of(state)
    if action is None or action.mode is None:
        return {"next": "record"}
    found = _recorded(state, desk, action, action.mode) or _search(state, desk, action, action.mode)
    desk.recorder.add(found)
    if found.refused:
        return {"next": "record"}
    if found.focus is None:
        return {"next": "bind"}
    moved = Focus(id=int(found.focus[1:]), video=found.focus_video, label=found.focus_label)
    return {"focus": plain(moved), "next": "bind"}


def _recorded(state: State, desk: Desk, action: Action, mode: Mode) -> Retrieved | None:
    """What the search gave before, where the run follows a record."""
    found = desk.recorder.past.found(mode, action.query)
    return found.model_copy(update={"round": state["round"]}) if found else None


def _search(state: State, desk: Desk, action: Action, mode: Mode) -> Retrieved:
    focus = focus_of(state)
    seen = frozenset(desk.recorder.evidence())
    try:
        found = desk.memory.search(
            view_of(state), mode, action.query, focus.id if focus else None, seen
        )
    except (UnknownLabel, InputError) as error:
        return _refused(state["round"], action, mode, focus, error)
    faults.fault_point(faults.FaultPoint.SEARCHED)
    return event_of(found, state["round"])


def _refused(
    number: int, action: Action, mode: Mode, focus: Focus | None, error: HomerError
) -> Retrieved:
    return Retrieved(
        round=number,
        mode=mode,
        query=action.query,
        evidence=(),
        focus=focus.ref if focus else None,
        focus_label=focus.label if focus else "",
        focus_video=focus.video if focus else "",
        nothing_close=True,
        refused=str(error),
    )


def event_of(found: Retrieval, number: int) -> Retrieved:
    """A retrieval as the trajectory keeps it."""
    return Retrieved(
        round=number,
        mode=found.mode,
        query=found.query,
        evidence=found.evidence,
        focus=f"s{found.focus.id}" if found.focus else None,
        focus_label=found.focus.label if found.focus else "",
        focus_video=found.focus.video if found.focus else "",
        neighbours=tuple(neighbours(found)),
        images=tuple(shown.blob for shown in found.images),
        nothing_close=found.nothing_close,
        searched=found.searched,
    )


def neighbours(found: Retrieval) -> list[Neighbour]:
    """The focus's neighbours in the order of the search, each by its first edge."""
    listed = []
    for segment in found.neighbours:
        edges = [e for e in found.edges if segment.id in (e.source, e.target)]
        edge = edges[0] if edges else None
        listed.append(
            Neighbour(
                ref=f"s{segment.id}",
                label=segment.label,
                relation=str(edge.relation) if edge else "near",
                outgoing=edge is None or edge.target == segment.id,
                rationale=edge.rationale if edge else "",
            )
        )
    return listed
