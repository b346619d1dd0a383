"""The reasoner without a language model: rules decide, and answers quote memory.

Deterministic: the same memory and question give the same decisions on any machine.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent.reasoners.concluding import by_event, by_events, by_options, by_quotation, quotable
from agent.reasoners.port import Assessment, Conclusion, DecisionContext
from agent.reasoners.question_parts import QuestionKind, as_query, decompose, kind_of, query_of
from agent.reasoners.structure_answers import by_structure, claimed
from agent.reasoners.structure_questions import structure_of
from domain.asking import Action, Evidence, Mode, Subtask
from domain.ledger import Edits, SubtaskDraft
from domain.skills import combined_policy
from domain.trajectory import EvidenceRetrieved, Neighbour, Resolution

NOTE = (
    "Answered without a language model: the text is quoted from memory, not phrased as an answer."
)
MOMENTS = 20
"""Moments of the whole view that a search adds for it."""
CAUSAL = frozenset({"causes", "enables", "requires", "prevents"})


class LocalReasoner:
    """A reasoner that applies rules to what the harness shows and the searches find."""

    name = "local"
    note = NOTE

    def plan(self, decision: DecisionContext) -> tuple[SubtaskDraft, ...]:
        """Split the question by its words, unless a skill says to leave it whole."""
        if combined_policy(decision.skills).split is False or is_structural(decision):
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
        return Action(kind="search", reason=reason_for(mode), mode=mode, query=query)

    def assess(self, decision: DecisionContext) -> Assessment:
        """Resolve a subtask with a quotation after a close look that found something close."""
        task, retrieval = decision.current, decision.found
        if task is None or retrieval is None or not can_answer(task, retrieval):
            return Assessment()
        if retrieval.finding is not None and (claim := claimed(decision, task, retrieval)):
            return Assessment(resolved=(claim,))
        best = quotable(answering_evidence(task, retrieval))
        if not best:
            return Assessment()
        claim = Resolution(subtask=task.id, answer=quotation(best), refs=tuple(e.ref for e in best))
        return Assessment(resolved=(claim,))

    def replan(self, decision: DecisionContext, reasons: tuple[str, ...]) -> Edits:  # noqa: ARG002
        """Return no edits: rules have no better plan than their first."""
        return Edits()

    def conclude(self, decision: DecisionContext) -> Conclusion:
        """Answer from the evidence of the options in the ledger, or with a quotation.

        A structural finding comes first. A question of several parts is answered part by part, a
        broad one by its event; over a few videos, an open one for each of them.
        """
        if answer := by_structure(decision):
            return answer
        if decision.question.options:
            return by_options(decision)
        if kind_of(decision.question.text) is QuestionKind.BROAD:
            if of_each := by_events(decision):
                return of_each
            if event := broadest(decision.held):
                return by_event(decision, event)
        return by_quotation(decision)


def is_structural(decision: DecisionContext) -> bool:
    """Check whether the whole question is answered from structure, so that it is not split."""
    return not decision.question.options and structure_of(decision.question.text) is not None


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


def reason_for(mode: Mode) -> str:
    """Return why a mode is chosen, for readers of the trajectory."""
    reasons = {
        Mode.EVENT: "find the event first",
        Mode.VIDEO: "look closer at what was said and done",
        Mode.KEYFRAME: "look at the images",
    }
    return reasons.get(mode, "")


def can_answer(task: Subtask, retrieval: EvidenceRetrieved) -> bool:
    """Check whether a search can answer a subtask: one by events answers only broad subtasks.

    A search that scored evidence for an option answers it in any mode.
    """
    close = (
        retrieval.mode in (Mode.VIDEO, Mode.KEYFRAME) or kind_of(task.text) is QuestionKind.BROAD
    )
    return close or bool(retrieval.weighed) or retrieval.finding is not None


def answering_evidence(task: Subtask, retrieval: EvidenceRetrieved) -> Sequence[Evidence]:
    """Return the evidence that may answer a subtask: lines and images, or events if it is broad."""
    events = [e for e in retrieval.evidence if e.ref.startswith("s")]
    if retrieval.weighed or not events:
        return [e for e in retrieval.evidence if not e.ref.startswith("s")]
    return events if kind_of(task.text) is QuestionKind.BROAD else retrieval.evidence


def quotation(evidence: Sequence[Evidence]) -> str:
    """Quote evidence with its times, in the order of the video."""
    in_time = sorted(evidence, key=lambda e: (e.video, e.span.start_ms))
    return " ".join(f"[{e.span}] {e.text}" for e in in_time)


def broadest(evidence: Sequence[Evidence]) -> Evidence | None:
    """Return the best event found, for a question about the whole."""
    events = [e for e in evidence if e.ref.startswith("s")]
    return max(events, key=lambda e: (e.score, -e.span.start_ms), default=None)
