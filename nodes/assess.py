"""Assess: measures how much is new, and which subtasks it answers."""

from __future__ import annotations

from agent.harness.correct import RoundGain, after_round
from agent.harness.verify import bearing, increment, is_low, score
from agent.prompt_context import attempt, decision_context_of
from agent.reasoners.concluding import answer_claim, ranking_text_of
from agent.reasoners.port import Assessment
from agent.run_context import RunContext
from agent.state import State, is_first_look, ledger_of, plain, progress_of, question_of
from domain.asking import Ledger, Mode
from domain.ledger import bind_evidence, find_subtask, reopen_subtask, resolve_subtask
from domain.ledger import refs as known_refs
from domain.trajectory import (
    IMAGE_FAILURE,
    AnswerProposed,
    Assessed,
    Bound,
    EvidenceRetrieved,
    Failed,
    ImagesSeen,
    Resolution,
    RoundClosed,
    RoundOpened,
)
from nodes.act import stuck_in


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
