"""Stop: a person does not want to wait, and gets the best answer so far, without any model."""

from __future__ import annotations

from agent.prompt_context import turn_of
from agent.reasoners.port import Conclusion, DecisionContext
from agent.run_context import RunContext
from agent.state import LoopOutcome, State, ledger_of, outcome_of, plain
from domain.asking import SubtaskState
from domain.trajectory import AnswerProposed, Interrupted
from nodes.finish import NOTHING_YET, end
from nodes.synthesize import answering, fallback

SO_FAR = "Stopped before the search was over: this is the best answer so far."
WHY = "it was stopped"


def stop(state: State, desk: RunContext) -> State:
    """End the trajectory with what it knows at this step."""
    number = state.get("round", 0)
    action = outcome_of(state).action or answering(_so_far(state, turn_of(state, desk)))
    desk.recorder.step = "stop"
    desk.recorder.add(Interrupted(round=number))
    desk.recorder.add(AnswerProposed(round=number, action=action, accepted=True))
    outcome = LoopOutcome(action=action, why=WHY, note=SO_FAR)
    return end({**state, "outcome": plain(outcome)}, desk, "stopped")


def _so_far(state: State, turn: DecisionContext) -> Conclusion:
    """What the resolved subtasks say; else the option or the words that the evidence speaks for."""
    done = [s for s in ledger_of(state).subtasks if s.state is SubtaskState.RESOLVED]
    if done and not turn.question.options:
        refs = dict.fromkeys(ref for subtask in done for ref in subtask.support)
        return Conclusion(text=" ".join(s.answer or "" for s in done), refs=tuple(refs))
    if not turn.evidence and not turn.question.options:
        return Conclusion(text=NOTHING_YET)
    return fallback(turn)
