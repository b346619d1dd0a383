"""Judging answers, their citations, and why a wrong one is wrong.

Answers are judged by code where there are options or conditions, else by a strong language model.
Where the reference has spans, citations are measured by tIoU and Ref@300.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from string import ascii_uppercase
from typing import Any, Literal, Protocol

from pydantic import BaseModel, Field

from agent.harness.inform import memory_line, quote_untrusted
from domain.asking import Aim, Answer, Evidence, Mode
from domain.calls import CallRecord
from domain.errors import HomerError, InputError, ModelError, SetupError
from domain.evaluation import ErrorType, Verdict
from domain.memories import MemoryView
from domain.time import TimeSpan
from domain.trajectory import Ended, Event, EvidenceRetrieved
from evals.dataset import Conditions, EvalQuestion
from flows.workspace import Workspace
from models.chat import StructuredChat
from models.messages import Message, prompts_beside, user
from models.profile import Profile
from models.specs import IN_PROCESS
from retrieval.retrievers import Retrievers
from retrieval.terms import terms
from store.queries.memories import memories_within
from store.queries.trajectories import add_call, events_of, find_call, find_trajectory

NAME = "options"
ANSWERS_WITHHELD = "the data set keeps its answer to itself"


def judge_options(question: EvalQuestion, answer: Answer) -> Verdict:
    """Judge the chosen option; unjudged if the set has no reference."""
    if not question.answer:
        return Verdict(right=None, judge=NAME, why=ANSWERS_WITHHELD)
    right = answer.option == question.answer
    why = f"chose {answer.option or 'nothing'}, right is {question.answer}"
    return Verdict(right=right, judge=NAME, why=why)


def judge_conditions(conditions: Conditions, answer: Answer) -> Verdict:
    """Judge an open answer by what it is to meet."""
    right = conditions.met_by(answer)
    return Verdict(right=right, judge="conditions", why="" if right else "not all of them are met")


# Open answers: a strong language model judges whether an answer means the reference.
#
# Temperature 0, and recorded like any other call. Without such a model, or if it fails, the answer
# is unjudged, never wrong.

NOBODY = "nobody"
ROLE, PURPOSE = "judge", "judge"
LONGEST = 2_000
prompt = prompts_beside(__file__)
M3_BENCH = "m3_bench"
"""After the rule of that data set's authors, which allows what follows reasonably."""
WEAK = (
    "no strong language model to judge an open answer: use a profile with one, or give the profile "
    "a [chat.judge]"
)


class Ruling(BaseModel):
    """Whether an answer is right."""

    reason: str = Field(max_length=600)
    right: bool


class JudgeChat(Protocol):
    """A chat with the model (``models.chat.StructuredChat``)."""

    def ask(
        self,
        messages: Sequence[Message],
        schema: type[Ruling],
        *,
        purpose: str,
        temperature: float | None = None,
    ) -> Ruling:
        """Ask for a value of type ``schema``."""


def judge_model(profile: Profile) -> str:
    """Return the model that judges open answers; "" if the profile has no strong enough one.

    It is the profile's own for the role, else the one that answers.
    """
    if ROLE not in profile.chat and profile.reasoner != "llm":
        return ""
    try:
        spec = profile.chat_for(ROLE)
    except SetupError:
        return ""
    # A model that answers in this process is too small to judge.
    weak = spec.provider == IN_PROCESS and ROLE not in profile.chat
    return "" if weak else spec.model


def judge_words(
    question: EvalQuestion,
    answer: Answer,
    model: str,
    chat: Callable[[], JudgeChat],
    rule: str = "judge",
) -> Verdict:
    """Judge by the model and a rule; unjudged without a model, a reference, or a readable reply."""
    if not question.answer:
        return Verdict(right=None, judge=NOBODY, why=ANSWERS_WITHHELD)
    if not model:
        return Verdict(right=None, judge=NOBODY, why=WEAK)
    try:
        answer_text = "The memory does not hold it." if answer.not_in_memory else answer.text
        asked = prompt(
            rule,
            question=quote_untrusted(question.question, LONGEST),
            reference=quote_untrusted(question.answer, LONGEST),
            answer=quote_untrusted(answer_text, LONGEST),
        )
        messages = [user(asked)]
        ruling = chat().ask(messages, Ruling, purpose=PURPOSE, temperature=0.0)
    except ModelError as error:
        return Verdict(right=None, judge=model, why=f"the judge failed: {error}", failed=True)
    return Verdict(right=ruling.right, judge=model, why=ruling.reason)


# Judging: right or wrong, the moments, the citations, and the fault of a wrong answer.

CLOSEST = 12
"""Lines of memory closest to the reference that the judge is shown."""


def judge(
    workspace: Workspace,
    question: EvalQuestion,
    video: str,
    trajectory: str,
    *,
    m3_bench: bool = False,
) -> Verdict:
    """Judge the answer of a trajectory to a question about ``video``.

    ``m3_bench``: open answers are judged by the rule of M3-Bench, too.
    """
    with workspace.store.begin() as session:
        answer = find_trajectory(session, trajectory).answer
    if answer is None:
        raise ValueError(f"trajectory {trajectory} has no answer to judge")
    # Calls to the judge are recorded with the trajectory, and not repeated for the same answer.
    model, chat = judge_model(workspace.profile), _chat_of(workspace, trajectory)
    if question.options:
        verdict = judge_options(question, answer)
    elif question.right is not None:
        verdict = judge_conditions(question.right, answer)
    else:
        verdict = judge_words(question, answer, model, chat)
    measures: dict[str, Any] = {
        **judge_citations(question, answer, video),
        **judge_moments(question, answer, video),
    }
    if m3_bench and not question.options and model:
        measures["m3_bench"] = judge_words(question, answer, model, chat, M3_BENCH).right
    judged = verdict.model_copy(update=measures)
    if judged.right is not False:
        return judged
    with workspace.store.begin() as session:
        scopes = find_trajectory(session, trajectory).view.scopes
        scope = next(candidate for candidate in scopes if candidate.video == video)
        remembered = memories_within(session, scope, question.spans) if question.spans else []
        events = events_of(session, trajectory)
        fault = fault_of(question, video, events, remembered)
    told = reference(question)
    if fault is ErrorType.UNKNOWN and told and model:
        search = Retrievers(workspace.store, workspace.toolbox, workspace.settings)
        aim = Aim(text=told, moments=CLOSEST, quotes=False)
        view = MemoryView(scopes=(scope,))
        closest = search.search(view, Mode.EVENT, told, aim=aim).evidence
        fault = judged_fault(question, answer, events, closest, chat)
    return judged.model_copy(update={"fault": fault})


def unanswered(error: HomerError, *, begun: bool = False) -> Verdict:
    """Judge a question without an answer wrong; after a model failure it is tried again.

    So is one that was ``begun``, whatever failed.
    """
    failed = begun or not isinstance(error, InputError)
    return Verdict(right=False, judge="nobody", why=f"no answer: {error}", failed=failed)


def _chat_of(workspace: Workspace, trajectory: str) -> Callable[[], StructuredChat]:
    """Return the judge's chat; recorded replies on this trajectory are reused."""

    def store_call(call: CallRecord) -> None:
        with workspace.store.begin() as session:
            add_call(session, replace(call, trajectory_id=trajectory))

    def recorded_reply(request: str) -> CallRecord | None:
        with workspace.store.begin() as session:
            call = find_call(session, request, trajectory)
        if call is None or call.error is not None or call.purpose not in (PURPOSE, FAULT):
            return None
        return call

    return lambda: workspace.toolbox.chat(ROLE, store_call, recorded_reply, live=True)


# Temporal grounding.


BIN_MS = 300_000
"""Width of the bins of Ref@300."""


def judge_moments(question: EvalQuestion, answer: Answer, video: str) -> dict[str, float | None]:
    """Return the overlap of cited and marked spans: to the millisecond, and in bins of 300 s.

    Nothing is measured of a question without spans.
    """
    if not question.spans:
        return {}
    cited = [citation.span for citation in answer.citations if citation.video == video]
    # Bins are those of all cited spans, else of the first that was retrieved. Spans of other videos
    # than the question's are disjoint from it.
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

    Nothing is measured of a question without spans.
    """
    if not question.spans:
        return {}
    hits = [c.video == video and touches(c.span, question.spans) for c in answer.citations]
    # An answer without citations has no share, and its first citation counts as wrong.
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
SHOWN = 60
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
