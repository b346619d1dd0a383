"""What is shown to a language model: VAM's prompts with untrusted text made safe; pure."""

from __future__ import annotations

from collections.abc import Iterable

from agent.harness.inform import quote_untrusted
from domain.asking import Question
from domain.trajectory import EvidenceRetrieved
from memory.prompts import join_lines
from strategies.question_page import question_block
from strategies.vam.prompts import prompt

NOTHING = "(nothing yet)"
SHOWN = 900
"""Characters of a result that the history shows."""
MOST_SHOWN = 20
"""Results of a turn that the history shows."""


def plan_system(rounds: int, tools: Iterable[str], sources: Iterable[str]) -> str:
    """Return the instructions of the rounds; only what is offered is named."""
    named = ", ".join(sources)
    actions = [prompt(f"plan_{tool}", sources=named) for tool in (*tools, "answer")]
    return prompt("plan_system", actions="\n".join(actions), rounds=rounds)


def plan_page(question: Question, history: str, number: int, rounds: int, complaint: str) -> str:
    """Return the request for the action of a round; ``complaint`` is about the last reply."""
    asked, shown = question_block(question), history or NOTHING
    page = prompt("plan", question=asked, history=shown, round=number, rounds=rounds)
    return after_complaint(page, complaint)


def conclude_page(question: Question, history: str, complaint: str) -> str:
    """Return the request for the answer."""
    page = prompt("conclude", question=question_block(question), history=history or NOTHING)
    return after_complaint(page, complaint)


def after_complaint(page: str, complaint: str) -> str:
    """Return a page with what was wrong with the last reply, if anything."""
    if not complaint:
        return page
    return f"{page}\n\n{prompt('refused', complaint=quote_untrusted(complaint))}"


def history_of(searches: Iterable[EvidenceRetrieved]) -> str:
    """Return all turns with their results, each with its place."""
    return "\n".join(turn_block(number, one) for number, one in enumerate(searches, 1))


def turn_block(number: int, made: EvidenceRetrieved) -> str:
    """Return a turn with its results, or why it was refused."""
    queries = [one["q"] for one in made.arguments.get("queries", ())]
    asked = " / ".join(queries) or made.query
    head = f"turn {number}: {made.mode}: {quote_untrusted(asked)}"
    if made.refused:
        return "\n".join(["<found>", head, f"refused: {quote_untrusted(made.refused)}", "</found>"])
    lines = [
        f"{place}. [{one.ref}] {one.span} {one.score:.2f}: {quote_untrusted(one.full_text, SHOWN)}"
        for place, one in enumerate(made.evidence[:MOST_SHOWN])
    ]
    searched = f"searched: {quote_untrusted(made.searched)}"
    return "\n".join(["<found>", head, searched, join_lines(lines) or NOTHING, "</found>"])
