"""Bind: ties the evidence that was found to the subtask it was searched for."""

from __future__ import annotations

from agent.run_context import RunContext
from agent.state import State, ledger_of, plain
from domain.ledger import bind_evidence
from domain.trajectory import Bound, EvidenceRetrieved


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
