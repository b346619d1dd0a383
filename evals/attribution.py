"""Why an answer is wrong, by code: from its trajectory, the memory and the reference's spans.

The paper's four labels, checked in this order, for answers to questions with marked spans:

- *memory absent*: nothing is remembered of the marked spans, as far as the question could see; -
*memory coarse*: something is, but fewer than half of the reference's words; - *event localisation*:
it is remembered, but no search found a memory of these spans; - *answer synthesis*: a search did,
and the answer is wrong all the same.

Words are compared by their stems, without stop words; a reference without such words counts as held
by any memory of its spans. Without spans the judge's model says which label applies, from what was
found and from what memory holds that is closest to the reference; without a model none does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from string import Template, ascii_uppercase
from typing import Literal

from pydantic import BaseModel, Field

from agent.harness.inform import memory_line, quote_untrusted
from domain.asking import Answer, Evidence
from domain.errors import ModelError
from domain.evaluation import ErrorType
from domain.time import TimeSpan
from domain.trajectory import Ended, Event, EvidenceRetrieved
from evals.dataset import EvalQuestion
from evals.judges.moments import touches
from models.chat import StructuredChat
from models.messages import user
from retrieval.terms import terms

FAULT = "fault"
"""The purpose of the call that says where an answer went wrong."""
PROMPT = Path(__file__).with_name("prompts") / "fault.md"
SHOWN, LONGEST = 60, 2_000
HELD = 0.5
"""The share of the reference's words that memory must hold."""


def fault_of(
    question: EvalQuestion, video: str, events: Sequence[Event], remembered: Sequence[str]
) -> ErrorType:
    """Return why the answer is wrong.

    Args:
        question: with the reference and its spans.
        remembered: the memory lines, in view, of the clips that the spans touch.
    """
    if not question.spans:
        return ErrorType.UNKNOWN
    if not remembered:
        return ErrorType.ABSENT
    if not holds_reference(remembered, reference(question)):
        return ErrorType.COARSE
    was_found = any(_is_moment(evidence, video, question.spans) for evidence in retrieved(events))
    return ErrorType.SYNTHESIS if was_found else ErrorType.LOCALISATION


class Fault(BaseModel):
    """Where an answer went wrong."""

    reason: str = Field(max_length=600)
    step: Literal["memory absent", "memory coarse", "event localisation", "answer synthesis"]


def judged_fault(
    question: EvalQuestion,
    answer: Answer,
    events: Sequence[Event],
    closest: Sequence[Evidence],
    chat: Callable[[], StructuredChat],
) -> ErrorType:
    """Return why an answer is wrong, as a model judges it; unknown if the model fails.

    ``closest``: what memory holds that is closest to the reference.
    """
    found = {piece.ref: piece for piece in retrieved(events)}
    told = Template(PROMPT.read_text(encoding="utf-8")).substitute(
        question=quote_untrusted(question.question, LONGEST),
        reference=quote_untrusted(reference(question), LONGEST),
        answer=quote_untrusted(answer.text, LONGEST),
        found="\n".join(memory_line(piece) for piece in [*found.values()][:SHOWN]),
        memory="\n".join(memory_line(piece) for piece in closest),
    )
    try:
        judged = chat().ask([user(told)], Fault, purpose=FAULT, temperature=0.0)
    except ModelError:
        return ErrorType.UNKNOWN
    return ErrorType(judged.value.step)


def reference(question: EvalQuestion) -> str:
    """Return the reference in words: the right option's text if there are options."""
    if not question.options or not question.answer:
        return question.answer
    return question.options[ascii_uppercase.index(question.answer)]


def holds_reference(lines: Iterable[str], reference_text: str) -> bool:
    """Check whether memory lines have at least half of the reference's words."""
    words = set(terms(reference_text))
    known = {word for line in lines for word in terms(line)}
    return len(words & known) >= HELD * len(words)


def retrieved(events: Iterable[Event]) -> list[Evidence]:
    """Return all evidence of the searches and of the answer."""
    evidence: list[Evidence] = []
    for event in events:
        if isinstance(event, EvidenceRetrieved):
            evidence += event.evidence
        elif isinstance(event, Ended) and event.answer is not None:
            evidence += event.answer.retrieved
    return evidence


def _is_moment(evidence: Evidence, video: str, spans: Sequence[TimeSpan]) -> bool:
    """Check whether evidence is from the spans; a segment is too long to be a moment."""
    moment = not evidence.ref.startswith("s")
    return moment and evidence.video == video and touches(evidence.span, spans)
