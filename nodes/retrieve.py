"""Retrieve: makes the search and records its result."""

from __future__ import annotations

from agent.reasoners.question_parts import query_of, sought_by
from agent.reasoners.structure_questions import structure_of
from agent.run_context import RunContext
from agent.state import (
    Focus,
    State,
    action_of,
    current_of,
    focus_of,
    is_first_look,
    plain,
    question_of,
    view_of,
)
from domain import faults
from domain.asking import Action, Mode
from domain.errors import HomerError, InputError
from domain.ranking import Aim
from domain.trajectory import EvidenceRetrieved, Neighbour
from retrieval.result import Retrieval, UnknownLabel


def retrieve(state: State, context: RunContext) -> State:
    """Search in the action's mode, from the focus; the focus may move."""
    action = action_of(state)
    if action is None or action.mode is None:
        return {"next": "record"}
    found = _recorded(state, context, action, action.mode) or _search(
        state, context, action, action.mode
    )
    context.recorder.add(found)
    if found.refused:
        return {"next": "record"}
    if found.focus is None:
        return {"next": "bind"}
    moved = Focus(id=int(found.focus[1:]), video=found.focus_video, label=found.focus_label)
    return {"focus": plain(moved), "next": "bind"}


def _recorded(
    state: State, context: RunContext, action: Action, mode: Mode
) -> EvidenceRetrieved | None:
    """Return the recorded result of the search, if there is one."""
    found = context.recorder.past.found(mode, action.query)
    return found.model_copy(update={"round": state["round"]}) if found else None


def _search(state: State, context: RunContext, action: Action, mode: Mode) -> EvidenceRetrieved:
    focus = focus_of(state)
    if mode is not Mode.NEIGHBOR and is_first_look(state):
        focus = None
    where = (view_of(state), mode, action.query, focus.id if focus else None, _seen(state, context))
    aim = aim_of(state, context, action)
    try:
        found = context.memory.search(*where, aim) if aim else context.memory.search(*where)
    except (UnknownLabel, InputError) as error:
        return _refused(state["round"], action, mode, focus_of(state), error)
    faults.fault_point(faults.FaultPoint.SEARCHED)
    event = event_of(found, state["round"])
    return event.model_copy(update={"options": letters_of(state)})


def aim_of(state: State, context: RunContext, action: Action) -> Aim | None:
    """Return what the search is for, if moments of the whole view are wanted.

    A query that only restates its subtask is ranked by the subtask's own words, any other as it is.
    """
    task, question = current_of(state), question_of(state)
    if not context.moments:
        return None
    is_restated = task is not None and action.query == query_of(task, question)
    text = sought_by(task, question) if task is not None and is_restated else action.query
    return Aim(
        text=text,
        options=question.options,
        letters=letters_of(state),
        moments=context.moments,
        structure=structure_of(text, question.options),
    )


def letters_of(state: State) -> tuple[str, ...]:
    """Return the options that this round searches for; empty: the question as a whole."""
    task = current_of(state)
    return task.options if task else ()


def _seen(state: State, context: RunContext) -> frozenset[str]:
    """Return refs shown before, to skip them.

    Refs of an EVENT are not skipped: it only points at its moments, for a closer look. Neither are
    those found for another option, which may support this one too.
    """
    letters = letters_of(state)
    shown = [
        search
        for search in context.recorder.of(EvidenceRetrieved)
        if search.mode is not Mode.EVENT and (not letters or search.options == letters)
    ]
    return frozenset(e.ref for search in shown for e in search.evidence)


def _refused(
    number: int, action: Action, mode: Mode, focus: Focus | None, error: HomerError
) -> EvidenceRetrieved:
    return EvidenceRetrieved(
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


def event_of(found: Retrieval, number: int) -> EvidenceRetrieved:
    """Convert a retrieval to its trajectory event."""
    return EvidenceRetrieved(
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
        weighed=found.weighed,
        temperature=found.temperature,
        extract=found.extract,
        finding=found.finding,
    )


def neighbours(found: Retrieval) -> list[Neighbour]:
    """Return the focus's neighbours in the order of the search, each by its first edge."""
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
