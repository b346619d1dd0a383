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
from domain.ledger import find_subtask, reopen_subtask, resolve_subtask
from domain.trajectory import IMAGE_FAILURE, Assessed, EvidenceRetrieved, Failed, Resolution


def assess(state: State, context: RunContext) -> State:
    """Measure the increment, and accept the reasoner's claims whose evidence is in the ledger."""
    *earlier, retrieval = context.recorder.of(EvidenceRetrieved)
    share = increment(retrieval, earlier)
    low = not is_first_look(state) and is_low(retrieval, earlier, share, context.settings)
    claims = _claims(state, context, retrieval)
    for blob in claims.unseen:
        message = f"the file of the image {blob[:12]} is missing or damaged: it was not looked at"
        context.recorder.add(Failed(round=state["round"], where=IMAGE_FAILURE, message=message))
    supported = _with_support(state, context, retrieval, claims)
    ledger, accepted, refused = _settled(ledger_of(state), supported)
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
    if not retrieval.evidence or retrieval.nothing_close:
        return Assessment()
    decision = decision_context_of(state, context, found=retrieval, images=retrieval.images)
    return attempt(context, "assess", decision, context.reasoner.assess, 1) or Assessment()


def _with_support(
    state: State, context: RunContext, retrieval: EvidenceRetrieved, claims: Assessment
) -> Assessment:
    """Return the claims with only the evidence that supports them."""
    resolved = tuple(_bearing(state, context, retrieval, claim) for claim in claims.resolved)
    return claims.model_copy(update={"resolved": resolved})


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
