"""Synthesize: the final answer from the evidence of the ledger."""

from __future__ import annotations

from collections.abc import Collection

from agent.harness.constrain import chosen_letter, letter, made_up_tags, words
from agent.prompt_context import attempt, decision_context_of, shown_tags
from agent.reasoners.port import Conclusion, DecisionContext, Unreadable
from agent.run_context import RunContext
from agent.state import State, outcome_of, plain
from domain.asking import Action
from domain.errors import BudgetExceeded
from domain.ledger import refs
from domain.search import QUOTED
from domain.trajectory import AnswerProposed, Failed

NO_ANSWER = "No readable answer came: this is what the evidence says most plainly."


def synthesize(state: State, context: RunContext) -> State:
    """Ask for a conclusion and check it; quote the evidence if there is none."""
    decision, note = decision_context_of(state, context), ""
    try:
        conclusion = attempt(
            context, "conclude", decision, lambda t: _checked(context, t), context.settings.retries
        )
    except BudgetExceeded as error:
        context.recorder.add(Failed(round=decision.round, where="conclude", message=str(error)))
        conclusion = None
    if conclusion is None:
        conclusion, note = fallback(decision), NO_ANSWER
    action = concluding_action(conclusion)
    context.recorder.add(AnswerProposed(round=state.get("round", 0), action=action, accepted=True))
    changes = {"action": action, "ranked": conclusion.ranked, "share": conclusion.share}
    changes |= {"sure": conclusion.sure, "note": note}
    outcome = outcome_of(state).model_copy(update=changes)
    return {"outcome": plain(outcome), "next": "finish"}


def _checked(context: RunContext, decision: DecisionContext) -> Conclusion:
    """Return the conclusion, with its option as a letter and only evidence that was shown.

    Raises:
        Unreadable: it is not an option, or cites nothing that was shown.
    """
    conclusion = context.actor.conclude(decision)
    seen = refs(decision.ledger) if context.by_rules else context.recorder.evidence()
    unknown = [ref for ref in conclusion.refs if ref not in seen]
    if unknown:
        raise Unreadable(f"Nothing with the id {', '.join(unknown)} was retrieved: cite others.")
    options = decision.question.options
    if not options:
        return _open(conclusion, shown_tags(decision.question, context))
    option = chosen_letter(conclusion.option or conclusion.text, options)
    if option is None:
        raise Unreadable(f"Choose exactly one letter from A to {letter(len(options) - 1)}.")
    if not conclusion.refs and seen:
        raise Unreadable("Cite the evidence that speaks for the option.")
    return conclusion.model_copy(update={"option": option, "not_in_memory": False})


def _open(conclusion: Conclusion, tags: Collection[str]) -> Conclusion:
    if conclusion.not_in_memory:
        return conclusion.model_copy(update={"option": None, "refs": ()})
    if not conclusion.text.strip():
        raise Unreadable("The answer is empty.")
    if not conclusion.refs:
        raise Unreadable("Cite the evidence, or say that the memory does not hold it.")
    if made_up := made_up_tags(conclusion.text, tags):
        raise Unreadable(f"Nobody goes by {', '.join(made_up)}: use tags as they were shown.")
    return conclusion.model_copy(update={"option": None})


def fallback(decision: DecisionContext) -> Conclusion:
    """Conclude by code: the option whose words the evidence holds, or a quotation."""
    best = sorted(decision.held, key=lambda e: (-e.score, e.span.start_ms))
    quoted = best[:QUOTED]
    cited = tuple(e.ref for e in quoted)
    if decision.question.options:
        evidence_words = {word for e in best for word in words(e.full_text)}
        shares = [
            len(evidence_words & set(words(o))) / max(1, len(set(words(o))))
            for o in decision.question.options
        ]
        option = letter(shares.index(max(shares)))
        return Conclusion(text=option, option=option, refs=cited)
    if not quoted:
        return Conclusion(text="The memory does not hold this.", not_in_memory=True)
    return Conclusion(text=" ".join(e.full_text for e in quoted), refs=cited)


def concluding_action(conclusion: Conclusion) -> Action:
    """Convert a conclusion to the action that ends a run."""
    return Action(
        kind="answer",
        answer=conclusion.option or conclusion.text,
        citations=conclusion.refs,
        support=conclusion.support,
        not_in_memory=conclusion.not_in_memory,
    )
