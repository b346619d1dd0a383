"""Assess: how much was new, and which subtasks it answers."""

from __future__ import annotations

from agent.harness.verify import increment, is_low
from agent.prompt_context import attempt, turn_of
from agent.reasoners.port import Assessment
from agent.reasoners.question_parts import subtask_claim
from agent.run_context import RunContext
from agent.state import State, is_first_look, ledger_of, plain, progress_of, question_of
from agent.support import bearing, score
from domain.asking import Ledger
from domain.ledger import get, reopen, resolve
from domain.trajectory import IMAGES, Assessed, EvidenceRetrieved, Failed, Resolution


def assess(state: State, desk: RunContext) -> State:
    """Measure the increment; take the reasoner's claims where code finds their evidence."""
    *earlier, found = desk.recorder.of(EvidenceRetrieved)
    share = increment(found, earlier)
    low = not is_first_look(state) and is_low(found, earlier, share, desk.settings)
    claims = _claims(state, desk, found)
    for blob in claims.unseen:
        message = f"the file of the image {blob[:12]} is missing or damaged: it was not looked at"
        desk.recorder.add(Failed(round=state["round"], where=IMAGES, message=message))
    borne = _borne_out(state, desk, found, claims)
    ledger, accepted, refused = _settled(ledger_of(state), borne)
    lows = progress_of(state).lows + 1 if low else 0
    desk.recorder.add(
        Assessed(
            round=state["round"],
            increment=round(share, 4),
            low=low,
            saturated=lows >= desk.settings.saturated_after,
            resolved=accepted,
            refused=refused,
        )
    )
    return {"ledger": plain(ledger), "next": "record"}


def _claims(state: State, desk: RunContext, found: EvidenceRetrieved) -> Assessment:
    if not found.evidence or found.nothing_close:
        return Assessment()
    turn = turn_of(state, desk, found=found, images=found.images)
    return attempt(desk, "assess", turn, desk.reasoner.assess, 1) or Assessment()


def _borne_out(
    state: State, desk: RunContext, found: EvidenceRetrieved, claims: Assessment
) -> Assessment:
    """The claims with only the evidence that bears on them."""
    kept = tuple(_bearing(state, desk, found, claim) for claim in claims.resolved)
    return claims.model_copy(update={"resolved": kept})


def _bearing(
    state: State, desk: RunContext, found: EvidenceRetrieved, claim: Resolution
) -> Resolution:
    """A claim as it is borne out; its support is the reasoner's where it told, else scored."""
    task = get(ledger_of(state), claim.subtask)
    if task is None:
        return claim
    told = {one.ref: one.score for one in claim.support}
    known = desk.recorder.evidence()
    unscored = [known[ref] for ref in claim.refs if ref in known and ref not in told]
    said = subtask_claim(task, question_of(state))
    scores = {**told, **score(desk, found.round, said, unscored)}
    return bearing(claim, scores, desk.settings.bearing)


def _settled(
    ledger: Ledger, claims: Assessment
) -> tuple[Ledger, tuple[Resolution, ...], tuple[str, ...]]:
    """The ledger with the claims that hold, which those are, and why the others do not."""
    accepted, refused = [], []
    for subtask in claims.reopened:
        ledger = reopen(ledger, subtask)
    for claim in claims.resolved:
        ledger, complaint = resolve(ledger, claim)
        if complaint:
            refused.append(complaint)
        else:
            accepted.append(claim)
    return ledger, tuple(accepted), tuple(refused)
