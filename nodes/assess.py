"""Assess: measures how much is new, and which subtasks it answers."""

from __future__ import annotations

from agent.harness.verify import increment, is_low
from agent.prompt_context import attempt, decision_context_of
from agent.reasoners.port import Assessment
from agent.reasoners.question_parts import subtask_claim
from agent.run_context import RunContext
from agent.state import State, is_first_look, ledger_of, plain, progress_of, question_of
from agent.support import bearing, score
from domain.asking import Ledger
from domain.ledger import bind_evidence, find_subtask, reopen_subtask, resolve_subtask
from domain.ledger import refs as known_refs
from domain.trajectory import (
    IMAGE_FAILURE,
    Assessed,
    Bound,
    EvidenceRetrieved,
    Failed,
    ImagesSeen,
    Resolution,
)


def assess(state: State, context: RunContext) -> State:
    """Measure the increment, and accept the reasoner's claims whose evidence is in the ledger."""
    *earlier, retrieval = context.recorder.of(EvidenceRetrieved)
    share = increment(retrieval, earlier)
    low = not is_first_look(state) and is_low(retrieval, earlier, share, context.settings)
    claims = _claims(state, context, retrieval)
    for blob in claims.unseen:
        message = f"the file of the image {blob[:12]} is missing or damaged: it was not looked at"
        context.recorder.add(Failed(round=state["round"], where=IMAGE_FAILURE, message=message))
    noted_ledger = _with_image_notes(state, context, retrieval, claims)
    resolved = tuple(_bearing(state, context, retrieval, claim) for claim in claims.resolved)
    supported = claims.model_copy(update={"resolved": resolved})
    ledger, accepted, refused = _settled(noted_ledger, supported)
    lows = progress_of(state).lows + 1 if low else 0
    context.recorder.add(
        Assessed(
            round=state["round"],
            increment=round(share, 4),
            low=low,
            saturated=lows >= context.settings.saturated_after,
            resolved=accepted,
            refused=refused,
        )
    )
    return {"ledger": plain(ledger), "next": "record"}


def _claims(state: State, context: RunContext, retrieval: EvidenceRetrieved) -> Assessment:
    if not retrieval.evidence or (context.by_rules and retrieval.nothing_close):
        return Assessment()
    decision = decision_context_of(state, context, found=retrieval)
    return attempt(context, "assess", decision, context.reasoner.assess, 1) or Assessment()


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
    text = subtask_claim(task, question_of(state))
    scores = {**given, **score(context, retrieval.round, text, unscored)}
    return bearing(claim, scores, context.settings.bearing)


def _settled(
    ledger: Ledger, claims: Assessment
) -> tuple[Ledger, tuple[Resolution, ...], tuple[str, ...]]:
    """Return the ledger with the claims that hold, these claims, and the others' complaints."""
    accepted, refused = [], []
    for subtask in claims.reopened:
        ledger = reopen_subtask(ledger, subtask)
    for claim in claims.resolved:
        ledger, complaint = resolve_subtask(ledger, claim)
        if complaint:
            refused.append(complaint)
        else:
            accepted.append(claim)
    return ledger, tuple(accepted), tuple(refused)
