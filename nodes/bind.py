"""Bind: evidence that was found is tied to the subtask it was searched for."""

from __future__ import annotations

from agent.run_context import RunContext
from agent.state import State, ledger_of, plain
from domain.ledger import bind as bind_evidence
from domain.trajectory import Bound, EvidenceRetrieved


def bind(state: State, desk: RunContext) -> State:
    """Evidence that is close enough to mean something goes into the ledger.

    Of options one is chosen in any case: what is nearest to each is compared, with its low score.
    """
    found, subtask = desk.recorder.of(EvidenceRetrieved)[-1], state.get("current")
    far = found.nothing_close and not found.weighed
    if far or not found.evidence or subtask is None:
        return {"next": "assess"}
    refs = tuple(e.ref for e in found.evidence)
    best = max(e.score for e in found.evidence)
    ledger = bind_evidence(ledger_of(state), subtask, refs, best)
    desk.recorder.add(Bound(round=state["round"], subtask=subtask, refs=refs, best_score=best))
    return {"ledger": plain(ledger), "next": "assess"}
