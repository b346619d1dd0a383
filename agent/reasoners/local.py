"""The reasoner without a language model: rules decide, and answers quote memory.

Deterministic: the same memory and question give the same decisions, whatever the machine.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent.reasoners.concluding import by_event, by_options, by_quotation, quotable
from agent.reasoners.port import Assessment, Conclusion, DecisionContext
from agent.reasoners.question_parts import QuestionKind, as_query, decompose, kind_of, query_of
from agent.reasoners.structure_answers import by_structure, claimed
from agent.reasoners.structure_questions import structure_of
from domain.asking import Action, Evidence, Mode, Subtask
from domain.ledger import Edits, SubtaskDraft
from domain.skills import policy_of
from domain.trajectory import EvidenceRetrieved, Neighbour, Resolution

NOTE = (
    "Answered without a language model: the text is quoted from memory, not phrased as an answer."
)
MOMENTS = 20
"""Moments of the whole view that a search lists for it."""
CAUSAL = frozenset({"causes", "enables", "requires", "prevents"})


class LocalReasoner:
    """Decides by rules over what the harness shows; searches, and nothing else, find things."""

    name = "local"
    note = NOTE

    def plan(self, turn: DecisionContext) -> tuple[SubtaskDraft, ...]:
        """Split the question by its words, unless a skill says to leave it whole."""
        if policy_of(turn.skills).split is False or is_structural(turn):
            return (SubtaskDraft(text=turn.question.text),)
        return decompose(turn.question.text, turn.question.options)

    def act(self, turn: DecisionContext) -> Action:
        """Search for the current subtask; answering is left to the conclusion."""
        text = turn.current.text if turn.current else turn.question.text
        mode = turn.forced or there(choose_mode(turn), turn)
        if mode is Mode.NEIGHBOR:
            label = cause_of(turn.neighbours) or first_label(turn.neighbours)
            if label:
                return Action(kind="search", reason="along an edge", mode=mode, query=label)
            mode = there(Mode.EVENT, turn)
        own = query_of(turn.current, turn.question) if turn.current else as_query(text)
        return Action(kind="search", reason=reason(mode), mode=mode, query=own)

    def assess(self, turn: DecisionContext) -> Assessment:
        """A close look that found something close answers its subtask with a quotation."""
        task, found = turn.current, turn.found
        if task is None or found is None or not closes(task, found):
            return Assessment()
        if found.finding is not None and (claim := claimed(turn, task, found)):
            return Assessment(resolved=(claim,))
        best = quotable(answering(task, found))
        if not best:
            return Assessment()
        claim = Resolution(subtask=task.id, answer=quotation(best), refs=tuple(e.ref for e in best))
        return Assessment(resolved=(claim,))

    def replan(self, turn: DecisionContext, reasons: tuple[str, ...]) -> Edits:  # noqa: ARG002
        """Rules have no better plan than their first."""
        return Edits()

    def conclude(self, turn: DecisionContext) -> Conclusion:
        """The options' evidence in the ledger, or a quotation of it, decides.

        What a structural search found comes first. A question of several parts is answered part by
        part, a broad one by its event.
        """
        if answer := by_structure(turn):
            return answer
        if turn.question.options:
            return by_options(turn)
        if kind_of(turn.question.text) is QuestionKind.BROAD and (event := broadest(turn.held)):
            return by_event(turn, event)
        return by_quotation(turn)


def is_structural(turn: DecisionContext) -> bool:
    """Whether the question as a whole is answered from structure, so that it is not split."""
    return not turn.question.options and structure_of(turn.question.text) is not None


def choose_mode(turn: DecisionContext) -> Mode:
    """First the event, then a closer look at it; for what something looks like, its images.

    A cause is looked for along a causal edge where there is one. A skill may know better.
    """
    task = turn.current
    first = task is None or task.attempts <= 1
    known = policy_of(turn.skills).modes
    if known and task is not None:
        return known[min(max(1, task.attempts), len(known)) - 1]
    if turn.focus is None or task is None:
        return Mode.EVENT if first else Mode.VIDEO
    kind = kind_of(task.text)
    if kind is QuestionKind.CAUSE and first and cause_of(turn.neighbours):
        return Mode.NEIGHBOR
    if first:
        return Mode.EVENT
    if kind is QuestionKind.LOOKS:
        return Mode.KEYFRAME
    return Mode.VIDEO if task.attempts == 2 else Mode.EVENT


def there(mode: Mode, turn: DecisionContext) -> Mode:
    """The mode, or VIDEO where it is switched off."""
    return mode if mode in turn.modes else Mode.VIDEO


def cause_of(neighbours: Sequence[Neighbour]) -> str:
    """The label of what caused the focus, "" where no edge says so."""
    causes = [n for n in neighbours if n.relation in CAUSAL and not n.outgoing]
    return first_label(causes)


def first_label(neighbours: Sequence[Neighbour]) -> str:
    """The first label there is to move to."""
    return next((n.label for n in neighbours), "")


def reason(mode: Mode) -> str:
    """Why a mode is chosen, for whoever reads the trajectory."""
    reasons = {
        Mode.EVENT: "find the event first",
        Mode.VIDEO: "look closer at what was said and done",
        Mode.KEYFRAME: "look at the images",
    }
    return reasons.get(mode, "")


def closes(task: Subtask, found: EvidenceRetrieved) -> bool:
    """Whether a search can answer a subtask: of events only broad ones are answered.

    What speaks for an option is answered by any search that weighed its evidence.
    """
    close = found.mode in (Mode.VIDEO, Mode.KEYFRAME) or kind_of(task.text) is QuestionKind.BROAD
    return close or bool(found.weighed) or found.finding is not None


def answering(task: Subtask, found: EvidenceRetrieved) -> Sequence[Evidence]:
    """The evidence that may answer a subtask: lines and images, of a broad one the events."""
    events = [e for e in found.evidence if e.ref.startswith("s")]
    if found.weighed or not events:
        return [e for e in found.evidence if not e.ref.startswith("s")]
    return events if kind_of(task.text) is QuestionKind.BROAD else found.evidence


def quotation(evidence: Sequence[Evidence]) -> str:
    """Evidence as a text: quoted with its time, in the order of the video."""
    in_time = sorted(evidence, key=lambda e: (e.video, e.span.start_ms))
    return " ".join(f"[{e.span}] {e.text}" for e in in_time)


def broadest(evidence: Sequence[Evidence]) -> Evidence | None:
    """The best event found, for a question about the whole."""
    events = [e for e in evidence if e.ref.startswith("s")]
    return max(events, key=lambda e: (e.score, -e.span.start_ms), default=None)
