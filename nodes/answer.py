"""Answer: checks a valid answer against the subtasks that are still open."""

from __future__ import annotations

from agent.harness.correct import needed_subtasks
from agent.harness.inform import quote_untrusted
from agent.prompt_context import is_last
from agent.run_context import RunContext
from agent.state import LoopOutcome, State, action_of, ledger_of, plain, progress_of
from domain.trajectory import AnswerProposed

REASONER_ANSWERED = "the reasoner answered"
"""The reason why the search ended, which is recorded."""


def answer(state: State, context: RunContext) -> State:
    """Accept the answer, or name the open subtasks once while there is budget for them."""
    action, counts = action_of(state), progress_of(state)
    if action is None:
        return {"next": "record"}
    open_subtasks = needed_subtasks(ledger_of(state), context.settings)
    deferred = bool(open_subtasks) and not (
        counts.reminded or is_last(state, context) or context.budget.gone()
    )
    names = ", ".join(f"{s.id} ({quote_untrusted(s.text)})" for s in open_subtasks)
    complaint = f"Still open: {names}. Search for it, or answer again if it does not matter."
    context.recorder.add(
        AnswerProposed(
            round=state["round"],
            action=action,
            accepted=not deferred,
            complaint=complaint if deferred else "",
        )
    )
    if not deferred:
        outcome = LoopOutcome(action=action, why=REASONER_ANSWERED)
        return {"outcome": plain(outcome), "next": "finish"}
    after = counts.model_copy(update={"reminded": True, "hints": (complaint,)})
    return {"progress": plain(after), "next": "record"}
