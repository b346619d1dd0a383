"""Replan: repairs a plan that is stuck, as little as possible."""

from __future__ import annotations

from agent.harness.correct import replan_reasons
from agent.prompt_context import attempt, decision_context_of
from agent.reasoners.port import DecisionContext
from agent.run_context import RunContext
from agent.state import State, ledger_of, plain, progress_of
from domain.ledger import Edits, apply_edits
from domain.trajectory import Replanned


def replan(state: State, context: RunContext) -> State:
    """Apply the reasoner's edits; edits that change nothing do not count as a repair."""
    counts, before = progress_of(state), ledger_of(state)
    reasons = replan_reasons(before, counts, context.settings)
    texts = tuple(reason.text for reason in reasons)

    def decide(decision: DecisionContext) -> Edits:
        return context.reasoner.replan(decision, texts)

    edits = (
        attempt(
            context, "replan", decision_context_of(state, context), decide, context.settings.retries
        )
        or Edits()
    )
    ledger, refused = apply_edits(before, edits, context.settings)
    empty = ledger == before
    context.recorder.add(
        Replanned(
            round=state.get("round", 0),
            reasons=texts,
            subtasks=ledger.subtasks,
            refused=tuple(refused),
            empty=empty,
        )
    )
    counted = not empty
    changes = {
        "replans": counts.replans + int(counted),
        "told": (*counts.told, *(reason.key for reason in reasons)),
        "stale": 0,
        "on_focus": 0,
    }
    after = counts.model_copy(update=changes)
    return {"ledger": plain(ledger), "progress": plain(after), "next": "schedule"}
