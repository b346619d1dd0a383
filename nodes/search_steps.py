"""The steps of a round of search: act, retrieve, assess.

Act: the reasoner searches or answers, and the guard lets through what keeps the rules. Retrieve
makes the search and records its result. Assess measures how much is new, and which subtasks it
answers.
"""

from __future__ import annotations

from agent.harness.constrain import ActionBounds, check
from agent.harness.verify_and_correct import (
    RoundGain,
    after_round,
    bearing,
    forced_mode,
    harness_search,
    increment,
    is_low,
    score,
)
from agent.reasoners.concluding import answer_claim, query_of, ranking_text_of
from agent.reasoners.port import Assessment, Unreadable
from agent.run_context import RunContext, attempt, decision_context_of, last_neighbours, shown_tags
from agent.state import (
    Focus,
    ProgressLedger,
    State,
    action_of,
    current_of,
    focus_of,
    is_first_look,
    ledger_of,
    plain,
    progress_of,
    question_of,
    view_of,
)
from domain import faults
from domain.asking import STRUCTURE, Action, Aim, Ledger, Mode
from domain.errors import InputError
from domain.ledger import bind_evidence, find_subtask, reopen_subtask, resolve_subtask
from domain.ledger import refs as known_refs
from domain.moments import Retrieval, UnknownLabel
from domain.trajectory import (
    IMAGE_FAILURE,
    Acted,
    AnswerProposed,
    Assessed,
    Bound,
    EvidenceRetrieved,
    Failed,
    Forced,
    ImagesSeen,
    ModelCalled,
    Neighbour,
    Resolution,
    RoundClosed,
    RoundOpened,
    Searched,
)

# Act: the reasoner searches once more, or answers.


def act(state: State, context: RunContext) -> State:
    """Record the reasoner's next action; an unreadable one goes to the guard as None."""
    complaint = ""
    try:
        action = context.recorder.replay_source.action() or context.actor.act(
            decision_context_of(state, context)
        )
    except Unreadable as error:
        action, complaint = None, str(error)
    tries = state.get("tries", 0)
    context.recorder.add(Acted(round=state["round"], action=action, attempt=tries))
    return {
        "action": plain(action) if action else None,
        "complaint": complaint,
        "next": "guard",
    }


# Guard: an action is carried out only if it keeps the rules; else another is requested.


def guard(state: State, context: RunContext) -> State:
    """Accept, send back with the complaint, or after the last retry let the harness search."""
    action, number = action_of(state), state["round"]
    verdict = check(action, bounds_of(state, context), context.settings)
    if action is None and state.get("complaint"):
        verdict = verdict.model_copy(update={"complaint": state["complaint"]})
    context.recorder.add(verdict.model_copy(update={"round": number}))
    if verdict.accepted and action is not None:
        return {"next": "retrieve" if action.kind == "search" else "answer"}
    tries = state.get("tries", 0) + 1
    if tries <= context.settings.retries and not context.budget.gone():
        return {"tries": tries, "complaint": verdict.complaint, "next": "act"}
    # Let the harness search itself; the round stays empty only if that is refused too.
    task, number = current_of(state), state["round"]
    if task is None:
        return {"action": None, "next": "record"}
    forced = decision_context_of(state, context).forced
    labels = [neighbour.label for neighbour in last_neighbours(context)]
    action = harness_search(task, forced, focus_of(state), labels, context.settings.memory.modes)
    rules = bounds_of(state, context).model_copy(update={"subtask": "", "forced": None})
    verdict = check(action, rules, context.settings)
    context.recorder.add(Acted(round=number, action=action, attempt=state.get("tries", 0) + 1))
    context.recorder.add(verdict.model_copy(update={"round": number}))
    return {
        "action": plain(action) if verdict.accepted else None,
        "complaint": "",
        "next": "retrieve" if verdict.accepted else "record",
    }


def bounds_of(state: State, context: RunContext) -> ActionBounds:
    task, forced = current_of(state), state.get("forced")
    return ActionBounds(
        options=question_of(state).options,
        letters=task.options if task else (),
        subtask=task.text if task else "",
        searched=context.recorder.of(EvidenceRetrieved),
        evidence=frozenset(context.recorder.evidence()),
        tags=shown_tags(question_of(state), context),
        forced=Mode(forced) if forced else None,
        modes=context.settings.memory.modes,
        focused=focus_of(state) is not None,
    )


# Force: sets the next mode of a search that is locked on.


def stuck_in(state: State, context: RunContext, counts: ProgressLedger) -> Mode | None:
    """Return the mode forced on a search that is locked on; None if it is not."""
    return forced_mode(counts, focus_of(state), context.settings, len(last_neighbours(context)))


def force(state: State, context: RunContext) -> State:
    """Force VIDEO after two rounds on one segment with nothing new, the next time a move."""
    counts = progress_of(state)
    mode = stuck_in(state, context, counts)
    if mode is None:
        return {"next": "progress"}
    reason = f"{counts.locked} rounds on one segment brought nothing new"
    context.recorder.add(Forced(round=state["round"], mode=mode, reason=reason))
    after = counts.model_copy(update={"forced": (*counts.forced, mode), "locked": 0})
    return {"progress": plain(after), "forced": str(mode), "next": "progress"}


# Retrieve.


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


# Assess.


def assess(state: State, context: RunContext) -> State:
    """Measure the increment, and accept the reasoner's claims whose evidence is in the ledger."""
    *earlier, retrieval = context.recorder.of(EvidenceRetrieved)
    share = increment(retrieval, earlier)
    low = not is_first_look(state) and is_low(retrieval, earlier, share, context.settings)
    if not retrieval.evidence or (context.by_rules and retrieval.nothing_close):
        claims = Assessment()
    else:
        decision = decision_context_of(state, context, found=retrieval)
        claims = attempt(context, "assess", decision, context.reasoner.assess, 1) or Assessment()
    for blob in claims.unseen:
        message = f"the file of the image {blob[:12]} is missing or damaged: it was not looked at"
        context.recorder.add(Failed(round=state["round"], where=IMAGE_FAILURE, message=message))
    noted_ledger = _with_image_notes(state, context, retrieval, claims)
    resolved = tuple(_bearing(state, context, retrieval, claim) for claim in claims.resolved)
    supported = claims.model_copy(update={"resolved": resolved})
    ledger = noted_ledger
    accepted, refused = list[Resolution](), list[str]()
    for subtask in supported.reopened:
        ledger = reopen_subtask(ledger, subtask)
    for claim in supported.resolved:
        ledger, complaint = resolve_subtask(ledger, claim)
        if complaint:
            refused.append(complaint)
        else:
            accepted.append(claim)
    lows = progress_of(state).lows + 1 if low else 0
    context.recorder.add(
        Assessed(
            round=state["round"],
            increment=round(share, 4),
            low=low,
            saturated=lows >= context.settings.saturated_after,
            resolved=tuple(accepted),
            refused=tuple(refused),
        )
    )
    return {"ledger": plain(ledger), "next": "record"}


def _with_image_notes(
    state: State, context: RunContext, retrieval: EvidenceRetrieved, claims: Assessment
) -> Ledger:
    """Record what was seen on the images that were shown, and tie it to the subtask.

    Returns:
        The ledger with it.
    """
    ledger, subtask, number = ledger_of(state), state.get("current"), state["round"]
    if not claims.shown:
        return ledger
    seen = tuple(one for one in claims.seen if one.ref in claims.shown)
    others = dict.fromkeys(one.ref for one in claims.seen if one.ref not in claims.shown)
    refused = tuple(f"{ref} was not among the images that were shown" for ref in others)
    context.recorder.add(ImagesSeen(round=number, shown=claims.shown, seen=seen, refused=refused))
    cited = [ref for claim in claims.resolved for ref in claim.refs if ref in claims.shown]
    refs = dict.fromkeys([*(one.ref for one in seen), *cited])
    fresh = tuple(ref for ref in refs if ref not in known_refs(ledger))
    if subtask is None or not fresh:
        return ledger
    best = max(e.score for e in retrieval.evidence if e.ref in fresh)
    context.recorder.add(Bound(round=number, subtask=subtask, refs=fresh, best_score=best))
    return bind_evidence(ledger, subtask, fresh, best)


def _bearing(
    state: State, context: RunContext, retrieval: EvidenceRetrieved, claim: Resolution
) -> Resolution:
    """Return a claim with only supporting evidence, scored where the reasoner gave no support."""
    task = find_subtask(ledger_of(state), claim.subtask)
    if task is None:
        return claim
    given = {support.ref: support.score for support in claim.support}
    known = context.recorder.evidence()
    unscored = [known[ref] for ref in claim.refs if ref in known and ref not in given]
    question = question_of(state)
    text = "; ".join(answer_claim(question, letter) for letter in task.options)
    text = text or ranking_text_of(task, question)
    scores = {**given, **score(context, retrieval.round, text, unscored)}
    return bearing(claim, scores, context.settings.bearing)


# Record: closes the round and counts it in the progress ledger.


def record(state: State, context: RunContext) -> State:
    """Count what the round found; its hints and its forced mode are used up.

    A round whose answer was sent back is not counted: it did not search.
    """
    number, ledger = state["round"], progress_of(state)
    warning = ""
    if not any(e.round == number for e in context.recorder.of(AnswerProposed)):
        searches, first_look = context.recorder.of(EvidenceRetrieved), is_first_look(state)
        known = {e.ref for r in searches if r.round < number for e in r.evidence}
        looks = [e for e in context.recorder.of(ImagesSeen) if e.round == number]
        on_images = {one.ref for look in looks for one in look.seen}
        now = [e for e in searches if e.round == number]
        close = [
            e
            for r in now
            for e in r.evidence
            if r.weighed or not r.nothing_close or e.ref in on_images
        ]
        opened = [e.focus for e in context.recorder.of(RoundOpened) if e.round == number]
        focus = now[-1].focus if now else None
        assessed = [e for e in context.recorder.of(Assessed) if e.round == number]
        gain = RoundGain(
            empty=not close,
            new_evidence=any(first_look or e.ref not in known for e in close),
            low=any(a.low for a in assessed) or not assessed,
            same_focus=focus is not None and focus in opened and not first_look,
        )
        modes = [search.mode for search in searches if isinstance(search.mode, Mode)]
        ledger, warning = after_round(
            ledger.model_copy(update={"hints": ()}), number, gain, modes, context.settings
        )
    closed = RoundClosed(
        round=number,
        subtasks=ledger_of(state).subtasks,
        tokens=context.budget.tokens,
        warning=warning,
    )
    context.recorder.add(closed)
    following = "progress" if stuck_in(state, context, ledger) is None else "force"
    return {"progress": plain(ledger), "forced": None, "next": following}
