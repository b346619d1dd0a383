"""Why an answer is wrong, by code: from its trajectory, the memory and the reference's spans.

The paper's four labels, asked in this order, for answers to questions with marked spans:

- *memory absent*: nothing is remembered of the marked spans, as far as the question could see;
- *memory coarse*: something is, but not what the reference says: fewer than half of its words;
- *event localisation*: it is remembered, and no search came upon a memory of these spans;
- *answer synthesis*: a search did, and the answer is wrong all the same.

Without spans none can be told. Words are compared by their stems, without stop words; a reference
without such words is taken to be held by whatever is remembered there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from string import ascii_uppercase

from domain.asking import Evidence
from domain.evaluation import ErrorType
from domain.time import TimeSpan
from domain.trajectory import Ended, Event, EvidenceRetrieved
from evals.dataset import EvalQuestion
from evals.judges.spans import touches
from retrieval.terms import terms

HELD = 0.5
"""The share of the reference's words that memory must hold."""


def fault_of(
    question: EvalQuestion, video: str, events: Sequence[Event], remembered: Sequence[str]
) -> ErrorType:
    """Why the answer is wrong.

    Args:
        question: with the reference and its spans.
        video: the id of its video.
        events: the trajectory.
        remembered: the lines of memory, in view, of the clips that the spans touch.
    """
    if not question.spans:
        return ErrorType.UNKNOWN
    if not remembered:
        return ErrorType.ABSENT
    if not holds(remembered, reference(question)):
        return ErrorType.COARSE
    found = any(_is_moment(one, video, question.spans) for one in retrieved(events))
    return ErrorType.SYNTHESIS if found else ErrorType.LOCALISATION


def reference(question: EvalQuestion) -> str:
    """The reference in words: the right option's, where there are options."""
    if not question.options or not question.answer:
        return question.answer
    return question.options[ascii_uppercase.index(question.answer)]


def holds(lines: Iterable[str], wanted: str) -> bool:
    """Whether lines of memory have at least half of the words that are wanted."""
    words = set(terms(wanted))
    known = {word for line in lines for word in terms(line)}
    return len(words & known) >= HELD * len(words)


def retrieved(events: Iterable[Event]) -> list[Evidence]:
    """Everything that a search, or the last look over the whole view, came upon."""
    found: list[Evidence] = []
    for event in events:
        if isinstance(event, EvidenceRetrieved):
            found += event.evidence
        elif isinstance(event, Ended) and event.answer is not None:
            found += event.answer.retrieved
    return found


def _is_moment(evidence: Evidence, video: str, spans: Sequence[TimeSpan]) -> bool:
    """Whether it is of the spans; a segment runs over too much to be a moment."""
    moment = not evidence.ref.startswith("s")
    return moment and evidence.video == video and touches(evidence.span, spans)
