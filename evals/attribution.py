"""Temporal grounding, if the reference has spans: tIoU of the citations, and Ref@300."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from string import ascii_uppercase
from typing import Literal

from pydantic import BaseModel, Field

from agent.harness.inform import memory_line, quote_untrusted
from domain.asking import Answer, Evidence
from domain.errors import ModelError
from domain.evaluation import ErrorType
from domain.time import TimeSpan
from domain.trajectory import Ended, Event, EvidenceRetrieved
from evals.dataset import EvalQuestion
from models.chat import StructuredChat
from models.messages import prompts_beside, user
from retrieval.terms import terms

BIN_MS = 300_000
"""Width of the bins of Ref@300."""


def judge_moments(question: EvalQuestion, answer: Answer, video: str) -> dict[str, float | None]:
    """Return the overlap of cited and marked spans: to the millisecond, and in bins of 300 s.

    Bins are those of all cited spans; without citations, of the first span that was retrieved.
    Spans of other videos than the question's count as disjoint. Nothing is measured of a question
    without spans.
    """
    if not question.spans:
        return {}
    cited = [citation.span for citation in answer.citations if citation.video == video]
    # Without any citation, the first moment that was retrieved.
    meant = [(one.video, one.span) for one in answer.citations or answer.retrieved[:1]]
    spans = [span for where, span in meant if where == video]
    return {
        "iou": iou(cited, question.spans),
        "ref300": binned_iou(spans, question.spans, BIN_MS),
    }


def merge_spans(spans: Iterable[TimeSpan]) -> list[TimeSpan]:
    """Return the same moments as spans that neither overlap nor touch, in order."""
    merged_spans: list[TimeSpan] = []
    for span in sorted(map(_long, spans), key=lambda item: (item.start_ms, item.end_ms)):
        if merged_spans and span.start_ms <= merged_spans[-1].end_ms:
            merged_spans[-1] = merged_spans[-1].union(span)
        else:
            merged_spans.append(span)
    return merged_spans


def _long(span: TimeSpan) -> TimeSpan:
    return TimeSpan.of(span.start_ms, max(span.end_ms, span.start_ms + 1))


def covered_ms(spans: Iterable[TimeSpan]) -> int:
    """Return the milliseconds in any of the spans."""
    return sum(span.length_ms for span in merge_spans(spans))


def iou(spans: Sequence[TimeSpan], other_spans: Sequence[TimeSpan]) -> float:
    """Return the intersection over union of two sets of moments, in [0, 1]; 0 of nothing."""
    union = covered_ms([*spans, *other_spans])
    shared = covered_ms(spans) + covered_ms(other_spans) - union
    return shared / union if union else 0.0


def touches(span: TimeSpan, spans: Iterable[TimeSpan]) -> bool:
    """Check whether a span shares a moment with one of the others."""
    return any(_long(span).overlap_ms(_long(other)) > 0 for other in spans)


def bins(spans: Iterable[TimeSpan], width_ms: int) -> frozenset[int]:
    """Return the bins of video time, each ``width_ms`` wide, that spans touch."""
    return frozenset(
        number
        for span in map(_long, spans)
        for number in range(span.start_ms // width_ms, (span.end_ms - 1) // width_ms + 1)
    )


def binned_iou(spans: Iterable[TimeSpan], other_spans: Iterable[TimeSpan], width_ms: int) -> float:
    """Return the intersection over union of the bins of two sets, in [0, 1]; 0 of nothing."""
    ours, theirs = bins(spans, width_ms), bins(other_spans, width_ms)
    return len(ours & theirs) / max(1, len(ours | theirs))


def judge_citations(
    question: EvalQuestion, answer: Answer, video: str
) -> dict[str, float | bool | None]:
    """Return the share of citations that overlap a marked span, and whether the first one does.

    An answer without citations has no share, and its first citation counts as wrong. Nothing is
    measured of a question without spans.
    """
    if not question.spans:
        return {}
    hits = [c.video == video and touches(c.span, question.spans) for c in answer.citations]
    share = sum(hits) / len(hits) if hits else None
    return {"cited": share, "top": bool(hits) and hits[0]}


# Why an answer is wrong, by code: from its trajectory, the memory and the reference's spans.
#
# The paper's four labels, checked in this order, for answers to questions with marked spans:
#
# - *memory absent*: nothing is remembered of the marked spans, as far as the question could see; -
# *memory coarse*: something is, but fewer than half of the reference's words; - *event
# localisation*: it is remembered, but no search found a memory of these spans; - *answer
# synthesis*: a search did, and the answer is wrong all the same.
#
# Words are compared by their stems, without stop words; a reference without such words counts as
# held by any memory of its spans. Without spans the judge's model says which label applies, from
# what was found and from what memory holds that is closest to the reference; without a model none
# does.

FAULT = "fault"
"""The purpose of the call that says where an answer went wrong."""
prompt = prompts_beside(__file__)
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
    # A segment is too long to be a moment.
    was_found = any(
        not one.ref.startswith("s") and one.video == video and touches(one.span, question.spans)
        for one in retrieved(events)
    )
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
    told = prompt(
        "fault",
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
    return ErrorType(judged.step)


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
