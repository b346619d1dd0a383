"""Synthesize: the final answer from the evidence of the ledger."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from agent.harness.constrain import chosen, letter, made_up_tags, words
from agent.prompt_context import attempt, shown_tags, turn_of
from agent.reasoners.port import Conclusion, DecisionContext, Unreadable
from agent.run_context import RunContext
from agent.state import State, outcome_of, plain
from domain.asking import Action, Evidence, Question
from domain.errors import BudgetExceeded
from domain.ledger import refs
from domain.trajectory import AnswerProposed, Failed

_QUOTED = 3
NO_ANSWER = "No readable answer came: this is what the evidence says most plainly."


def synthesize(state: State, desk: RunContext) -> State:
    """Ask for a conclusion and check it; quote the evidence where none can be had."""
    turn, note = turn_of(state, desk), ""
    try:
        found = attempt(desk, "conclude", turn, lambda t: _checked(desk, t), desk.settings.retries)
    except BudgetExceeded as error:
        desk.recorder.add(Failed(round=turn.round, where="conclude", message=str(error)))
        found = None
    if found is None:
        found, note = fallback(turn), NO_ANSWER
    return _settled(state, desk, found, note)


def _checked(desk: RunContext, turn: DecisionContext) -> Conclusion:
    """The conclusion, with its option as a letter and only evidence of the ledger.

    Raises:
        Unreadable: it is no option, or rests on nothing that the ledger holds.
    """
    said = desk.reasoner.conclude(turn)
    seen = refs(turn.ledger)
    unknown = [ref for ref in said.refs if ref not in seen]
    if unknown:
        raise Unreadable(f"Nothing with the id {', '.join(unknown)} was retrieved: cite others.")
    options = turn.question.options
    if not options:
        return _open(said, shown_tags(turn.question, desk))
    option = chosen(said.option or said.text, options)
    if option is None:
        raise Unreadable(f"Choose exactly one letter from A to {letter(len(options) - 1)}.")
    if not said.refs and seen:
        raise Unreadable("Cite the evidence that speaks for the option.")
    return said.model_copy(update={"option": option, "not_in_memory": False, "declined": False})


def _open(said: Conclusion, tags: Collection[str]) -> Conclusion:
    if said.not_in_memory:
        return said.model_copy(update={"option": None, "refs": ()})
    if not said.text.strip():
        raise Unreadable("The answer is empty.")
    if not said.refs:
        raise Unreadable("Cite the evidence, or say that the memory does not hold it.")
    if made_up := made_up_tags(said.text, tags):
        raise Unreadable(f"Nobody goes by {', '.join(made_up)}: use tags as they were shown.")
    return said.model_copy(update={"option": None})


def fallback(turn: DecisionContext) -> Conclusion:
    """What code can say by itself: the option whose words the evidence holds, or a quotation."""
    best = sorted(turn.held, key=lambda e: (-e.score, e.span.start_ms))
    quoted = best[:_QUOTED]
    cited = tuple(e.ref for e in quoted)
    if turn.question.options:
        option = letter(_fullest(turn.question, best))
        return Conclusion(text=option, option=option, refs=cited)
    if not quoted:
        return Conclusion(text="The memory does not hold this.", not_in_memory=True)
    return Conclusion(text=" ".join(e.text for e in quoted), refs=cited)


def _fullest(question: Question, evidence: Sequence[Evidence]) -> int:
    """The option with the largest share of its words in the evidence, the first of equals."""
    held = {word for e in evidence for word in words(e.text)}
    shares = [len(held & set(words(o))) / max(1, len(set(words(o)))) for o in question.options]
    return shares.index(max(shares))


def _settled(state: State, desk: RunContext, said: Conclusion, note: str) -> State:
    """Record the conclusion."""
    action = answering(said)
    desk.recorder.add(AnswerProposed(round=state.get("round", 0), action=action, accepted=True))
    changes = {"action": action, "ranked": said.ranked, "share": said.share}
    changes |= {"sure": said.sure, "declined": said.declined, "note": note}
    outcome = outcome_of(state).model_copy(update=changes)
    return {"outcome": plain(outcome), "next": "finish"}


def answering(said: Conclusion) -> Action:
    """A conclusion as the action that ends a run."""
    return Action(
        kind="answer",
        answer=said.option or said.text,
        citations=said.refs,
        support=said.support,
        not_in_memory=said.not_in_memory,
    )
