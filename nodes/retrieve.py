"""Retrieve: makes the search and records its result."""

from __future__ import annotations

from agent.reasoners.concluding import query_of, ranking_text_of
from agent.run_context import RunContext
from agent.state import (
    Focus,
    State,
    action_of,
    current_of,
    focus_of,
    is_first_look,
    ledger_of,
    plain,
    question_of,
    view_of,
)
from domain import faults
from domain.asking import STRUCTURE, Action, Aim, Mode
from domain.errors import InputError
from domain.ledger import bind_evidence
from domain.moments import Retrieval, UnknownLabel
from domain.trajectory import Bound, EvidenceRetrieved, ModelCalled, Neighbour, Searched


def retrieve(state: State, context: RunContext) -> State:
    """Search in the action's mode, from the focus; the focus may move."""
    action = action_of(state)
    if action is None or not isinstance(action.mode, Mode):
        return {"next": "record"}
    retrieval = recorded(context, action) or _search(state, context, action, action.mode)
    context.recorder.add(retrieval.model_copy(update={"round": state["round"]}))
    if retrieval.refused:
        return {"next": "record"}
    if retrieval.focus is None:
        return {"next": "bind"}
    moved = Focus(
        id=int(retrieval.focus[1:]), video=retrieval.focus_video, label=retrieval.focus_label
    )
    return {"focus": plain(moved), "next": "bind"}


def recorded(context: RunContext, action: Action) -> EvidenceRetrieved | None:
    """Return the recorded result if there is one, after the calls that were made for it."""
    source, name = context.recorder.replay_source, str(action.mode)
    found = source.found(name, action.query, action.arguments)
    for event in source.calls_of_tool() if found else ():
        if isinstance(event, ModelCalled):
            context.budget.add(event.tokens_in, event.tokens_out)
        context.recorder.add(event)
    return found


def _search(state: State, context: RunContext, action: Action, mode: Mode) -> EvidenceRetrieved:
    focus = focus_of(state)
    if mode is not Mode.NEIGHBOR and is_first_look(state):
        focus = None
    # Refs shown before are skipped; not those of an EVENT, which only points at its moments, for a
    # closer look, nor those found for another option, which may support this one too.
    letters = letters_of(state)
    seen = frozenset(
        evidence.ref
        for search in context.recorder.of(EvidenceRetrieved)
        if search.mode is not Mode.EVENT and (not letters or search.options == letters)
        for evidence in search.evidence
    )
    # What is looked at when a time is named is all that is wanted.
    span = action.span if mode is Mode.KEYFRAME else None
    aim = aim_of(state, context, action) if span is None else None
    try:
        retrieval = context.memory.search(
            view_of(state), mode, action.query, focus.id if focus else None, seen, aim, span
        )
    except (UnknownLabel, InputError) as error:
        stays = focus_of(state)
        return EvidenceRetrieved(
            round=state["round"],
            mode=mode,
            query=action.query,
            focus=stays.ref if stays else None,
            focus_label=stays.label if stays else "",
            focus_video=stays.video if stays else "",
            nothing_close=True,
            refused=str(error),
            span=action.span,
        )
    faults.fault_point(faults.FaultPoint.SEARCHED)
    retrieval = retrieval.model_copy(update={"unbuilt": context.unbuilt()})
    event = event_of(retrieval, state["round"])
    return event.model_copy(update={"options": letters_of(state), "span": span})


def aim_of(state: State, context: RunContext, action: Action) -> Aim:
    """Return what the search is for.

    A query that only restates its subtask is ranked by the subtask's own words, any other as it is.
    """
    task, question = current_of(state), question_of(state)
    is_restated = task is not None and action.query == query_of(task, question)
    local = context.by_rules
    text = ranking_text_of(task, question) if local and task and is_restated else action.query
    again = task is not None and task.attempts > 1
    told = any(
        q.kind == STRUCTURE for e in context.recorder.of(EvidenceRetrieved) for q in e.quotes
    )
    texts = (text, *((task.text, question.text) if task and not local else ()))
    return Aim(
        text=text,
        options=question.options if local else (),
        letters=letters_of(state) if local else (),
        moments=context.moments,
        quotes=local,
        # What was told once is known, or was put aside by a person.
        asked=() if (again if local else told) else tuple(dict.fromkeys(texts)),
    )


def letters_of(state: State) -> tuple[str, ...]:
    """Return the options that this round searches for; empty: the question as a whole."""
    task = current_of(state)
    return task.options if task else ()


def event_of(retrieval: Retrieval, number: int) -> EvidenceRetrieved:
    """Convert a retrieval to its trajectory event."""
    focus = retrieval.focus
    return EvidenceRetrieved(
        round=number,
        focus=f"s{focus.id}" if focus else None,
        focus_label=focus.label if focus else "",
        focus_video=focus.video if focus else "",
        neighbours=tuple(neighbours(retrieval)),
        images=tuple(image.blob for image in retrieval.images),
        **{name: getattr(retrieval, name) for name in Searched.model_fields},
    )


def neighbours(retrieval: Retrieval) -> list[Neighbour]:
    """Return the neighbours in the order of the search, each by the first edge of a pair."""
    focus, listed = retrieval.focus.id if retrieval.focus else 0, dict[frozenset[int], Neighbour]()
    for segment in retrieval.neighbours:
        edges = [e for e in retrieval.edges if segment.id in (e.source, e.target)]
        for edge in edges or (None,):
            other = edge.source + edge.target - segment.id if edge else focus
            one = Neighbour(
                ref=f"s{segment.id}",
                of="" if other == focus else f"s{other}",
                label=segment.label,
                relation=str(edge.relation) if edge else "near",
                outgoing=edge is None or edge.target == segment.id,
                rationale=edge.rationale if edge else "",
            )
            listed.setdefault(frozenset({segment.id, other}), one)
    return [*listed.values()]


# Bind: ties the evidence that was found to the subtask it was searched for.


def bind(state: State, context: RunContext) -> State:
    """Put evidence into the ledger: for rules, what is close enough.

    Evidence for options always counts: the nearest for each is compared, with its low score. A
    language model reads what it is shown, and judges better than a threshold what bears on it.
    """
    retrieval, subtask = context.recorder.of(EvidenceRetrieved)[-1], state.get("current")
    too_far = context.by_rules and retrieval.nothing_close and not retrieval.weighed
    if too_far or not retrieval.evidence or subtask is None:
        return {"next": "assess"}
    refs = tuple(e.ref for e in retrieval.evidence)
    best = max(e.score for e in retrieval.evidence)
    ledger = bind_evidence(ledger_of(state), subtask, refs, best)
    context.recorder.add(Bound(round=state["round"], subtask=subtask, refs=refs, best_score=best))
    return {"ledger": plain(ledger), "next": "assess"}
