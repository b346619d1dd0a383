"""Plan: skills for the question, subtasks, progress, repair of the plan, the next subtask."""

from __future__ import annotations

from agent.harness.verify_and_correct import replan_reasons
from agent.reasoners.port import DecisionContext
from agent.run_context import RunContext, attempt, decision_context_of, is_last
from agent.state import LoopOutcome, State, focus_of, ledger_of, plain, progress_of, question_of
from domain.asking import SubtaskState
from domain.ledger import Edits, apply_edits, begin_attempt, is_open, new_ledger, next_subtask
from domain.trajectory import Planned, Progressed, Replanned, RoundOpened, SkillsRouted

# Route: gives the question the skills for questions like it (section 3).


def route(state: State, context: RunContext) -> State:
    """Look up skills if there is a library; a replayed run takes its recorded ones.

    The skill by which the strategy was chosen comes first.
    """
    skills = context.recorder.replay_source.routed()
    if skills is None:
        chosen_by = context.recorder.chosen_by
        settings = context.settings
        if context.skills is None or not settings.skills:
            routed = None
        else:
            text = question_of(state).text
            routed = context.skills.route(text, settings.skill_cosine, settings.skill_tokens)
        skills = routed if chosen_by is None else (chosen_by, *(routed or ()))
    if skills is not None:
        context.recorder.add(SkillsRouted(skills=skills))
    return {"next": "plan"}


# Plan: splits the question into at most five atomic subtasks.


def plan(state: State, context: RunContext) -> State:
    """Ask for a plan and check it; the question itself is the plan if there is none."""
    decide = context.reasoner.plan
    drafts = (
        attempt(
            context, "plan", decision_context_of(state, context), decide, context.settings.retries
        )
        or ()
    )
    ledger, dropped = new_ledger(drafts, question_of(state).text, context.settings)
    context.recorder.add(Planned(subtasks=ledger.subtasks, dropped=tuple(dropped)))
    return {"ledger": plain(ledger), "next": "progress"}


# Progress check: continue, repair the plan first, or finish.

ALL_RESOLVED, NOTHING_NEW = "all subtasks are resolved", "the search gives nothing new"
NOTHING_LEFT = "no subtask can be searched any further"
"""Reasons to finish, which are recorded."""


def finished(context: RunContext, number: int, why: str) -> State:
    """Record that the search ends after round ``number``, and why."""
    context.recorder.add(Progressed(round=number, verdict="finish", reasons=(why,)))
    return {"next": "synthesize", "outcome": plain(LoopOutcome(why=why))}


def progress(state: State, context: RunContext) -> State:
    """Check the budgets, then whether all is resolved, then whether the plan needs repair."""
    number = state.get("round", 0)
    subtasks = ledger_of(state).subtasks
    if number >= context.settings.rounds:
        why = f"all {context.settings.rounds} rounds are used"
    elif number and is_last(state, context):
        why = NOTHING_NEW
    else:
        why = context.budget.gone()
    if not why and not any(is_open(one) for one in subtasks):
        resolved = any(one.state is SubtaskState.RESOLVED for one in subtasks)
        why = ALL_RESOLVED if resolved else ""
    if why:
        return finished(context, number, why)
    counts = progress_of(state)
    reasons = replan_reasons(ledger_of(state), counts, context.settings)
    if reasons and counts.replans < context.settings.replans:
        texts = tuple(reason.text for reason in reasons)
        context.recorder.add(Progressed(round=number, verdict="replan", reasons=texts))
        return {"next": "replan"}
    if next_subtask(ledger_of(state), context.settings) is None:
        return finished(context, number, NOTHING_LEFT)
    context.recorder.add(Progressed(round=number, verdict="go"))
    return {"next": "schedule"}


# Replan: repairs a plan that is stuck, as little as possible.


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


# Schedule: opens a round for the next subtask.


def schedule(state: State, context: RunContext) -> State:
    """Open a round, which counts as an attempt; finish where no subtask can be worked on."""
    ledger, number = ledger_of(state), state.get("round", 0) + 1
    task = next_subtask(ledger, context.settings)
    if task is None:
        return finished(context, number - 1, NOTHING_LEFT)
    focus = focus_of(state)
    context.recorder.add(
        RoundOpened(
            round=number,
            subtask=task.id,
            text=task.text,
            attempt=task.attempts + 1,
            focus=focus.ref if focus else None,
        )
    )
    return {"ledger": plain(begin_attempt(ledger, task.id)), **opened(number, task.id)}


def opened(number: int, subtask: str) -> State:
    return {
        "round": number,
        "current": subtask,
        "action": None,
        "tries": 0,
        "complaint": "",
        "next": "act",
    }
