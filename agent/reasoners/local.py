"""The reasoner without a language model: rules decide, and answers quote memory.

Deterministic: the same memory and question give the same decisions on any machine.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent.reasoners.concluding import (
    NEAR_BEST,
    QuestionKind,
    as_query,
    by_options,
    by_quotation,
    decompose,
    kind_of,
    query_of,
    supports,
)
from agent.reasoners.port import Assessment, Conclusion, DecisionContext
from domain.asking import NOTE, QUOTED, Action, Mode, Support, answering
from domain.ledger import Edits, SubtaskDraft
from domain.skills import combined_policy
from domain.trajectory import Neighbour, Resolution

MOMENTS = 20
"""Moments of the whole view that a search adds for it."""
CAUSAL = frozenset({"causes", "enables", "requires", "prevents"})


class LocalReasoner:
    """A reasoner that applies rules to what the harness shows and the searches find."""

    name = "local"
    note = NOTE

    def plan(self, decision: DecisionContext) -> tuple[SubtaskDraft, ...]:
        """Split the question by its options or parts, unless a skill says to leave it whole."""
        if combined_policy(decision.skills).split is False:
            return (SubtaskDraft(text=decision.question.text),)
        return decompose(decision.question.text, decision.question.options)

    def act(self, decision: DecisionContext) -> Action:
        """Search for the current subtask; answering is left to the conclusion."""
        text = decision.current.text if decision.current else decision.question.text
        mode = decision.forced or available_mode(choose_mode(decision), decision)
        if mode is Mode.NEIGHBOR:
            label = cause_of(decision.neighbours) or first_label(decision.neighbours)
            if label:
                return Action(kind="search", reason="along an edge", mode=mode, query=label)
            mode = available_mode(Mode.EVENT, decision)
        query = (
            query_of(decision.current, decision.question) if decision.current else as_query(text)
        )
        reasons = {
            Mode.EVENT: "find the event first",
            Mode.VIDEO: "look closer at what was said and done",
            Mode.KEYFRAME: "look at the images",
        }
        return Action(kind="search", reason=reasons.get(mode, ""), mode=mode, query=query)

    def assess(self, decision: DecisionContext) -> Assessment:
        """Resolve a subtask with what answers it: quotes, or lines that were weighed by option."""
        task, retrieval = decision.current, decision.found
        if task is None or retrieval is None:
            return Assessment()
        support: tuple[Support, ...] = ()
        if retrieval.weighed:
            lines = [e for e in retrieval.evidence if not e.ref.startswith("s")]
            ranked = sorted(lines, key=lambda e: (-e.score, e.span.start_ms))
            near = [e for e in ranked if e.score >= NEAR_BEST * ranked[0].score][:QUOTED]
            answer = " ".join(
                f"[{e.span}] {e.text}"
                for e in sorted(near, key=lambda e: (e.video, e.span.start_ms))
            )
            refs = tuple(e.ref for e in near)
        else:
            several = [quote for one in retrieval.by_video for quote in one.quotes]
            quotes = several or answering(retrieval.quotes)
            answer = " ".join(quote.text for quote in quotes)
            support = supports(quotes)
            refs = tuple(one.ref for one in support)
        if not refs:
            return Assessment()
        claim = Resolution(subtask=task.id, answer=answer, refs=refs, support=support)
        return Assessment(resolved=(claim,))

    def replan(self, decision: DecisionContext, reasons: tuple[str, ...]) -> Edits:  # noqa: ARG002
        """Return no edits: rules have no better plan than their first."""
        return Edits()

    def conclude(self, decision: DecisionContext) -> Conclusion:
        """Answer from the evidence of the options in the ledger, or with quotations."""
        return by_options(decision) if decision.question.options else by_quotation(decision)


def choose_mode(decision: DecisionContext) -> Mode:
    """Choose EVENT first, then a closer look; KEYFRAME for what something looks like.

    A cause is searched along a causal edge if there is one. A skill's policy comes first.
    """
    task = decision.current
    first = task is None or task.attempts <= 1
    known = combined_policy(decision.skills).modes
    if known and task is not None:
        return known[min(max(1, task.attempts), len(known)) - 1]
    if decision.focus is None or task is None:
        return Mode.EVENT if first else Mode.VIDEO
    kind = kind_of(task.text)
    if kind is QuestionKind.CAUSE and first and cause_of(decision.neighbours):
        return Mode.NEIGHBOR
    if first:
        return Mode.EVENT
    if kind is QuestionKind.LOOKS:
        return Mode.KEYFRAME
    return Mode.VIDEO if task.attempts == 2 else Mode.EVENT


def available_mode(mode: Mode, decision: DecisionContext) -> Mode:
    """Return the mode, or VIDEO if it is switched off."""
    return mode if mode in decision.modes else Mode.VIDEO


def cause_of(neighbours: Sequence[Neighbour]) -> str:
    """Return the label of what caused the focus; "" if no edge says so."""
    causes = [n for n in neighbours if n.relation in CAUSAL and not n.outgoing]
    return first_label(causes)


def first_label(neighbours: Sequence[Neighbour]) -> str:
    """Return the first neighbour's label, or ""."""
    return next((n.label for n in neighbours), "")
