"""Stop: the best answer so far, without any model, for a user who does not want to wait."""

from __future__ import annotations

from agent.prompt_context import decision_context_of
from agent.reasoners.port import Conclusion, DecisionContext
from agent.run_context import RunContext
from agent.state import LoopOutcome, State, ledger_of, outcome_of, plain
from domain.asking import SubtaskState
from domain.trajectory import AnswerProposed, Interrupted
from nodes.finish import NOTHING_YET, end
from nodes.synthesize import concluding_action, fallback

SO_FAR = "Stopped before the search was over: this is the best answer so far."
WHY = "it was stopped"


def stop(state: State, context: RunContext) -> State:
    """End the trajectory with the best answer at this step."""
    number = state.get("round", 0)
    action = outcome_of(state).action or concluding_action(
        _so_far(state, decision_context_of(state, context))
    )
    context.recorder.step = "stop"
    context.recorder.add(Interrupted(round=number))
    context.recorder.add(AnswerProposed(round=number, action=action, accepted=True))
    outcome = LoopOutcome(action=action, why=WHY, note=SO_FAR)
    return end({**state, "outcome": plain(outcome)}, context, "stopped")


def _so_far(state: State, decision: DecisionContext) -> Conclusion:
    """Conclude from the resolved subtasks, else from the evidence alone."""
    resolved = [s for s in ledger_of(state).subtasks if s.state is SubtaskState.RESOLVED]
    if resolved and not decision.question.options:
        refs = dict.fromkeys(ref for subtask in resolved for ref in subtask.support)
        return Conclusion(text=" ".join(s.answer or "" for s in resolved), refs=tuple(refs))
    if not decision.evidence and not decision.question.options:
        return Conclusion(text=NOTHING_YET)
    return fallback(decision)
