"""Judging: by code where there are options or conditions, else by a strong language model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

from pydantic import BaseModel, Field

from agent.harness.inform import quote_untrusted
from domain.asking import Aim, Answer, Mode
from domain.calls import CallRecord
from domain.errors import HomerError, InputError, ModelError, SetupError
from domain.evaluation import ErrorType, Verdict
from domain.memories import MemoryView
from evals.attribution import (
    FAULT,
    fault_of,
    judge_citations,
    judge_moments,
    judged_fault,
    reference,
)
from evals.dataset import Conditions, EvalQuestion
from flows.workspace import Workspace
from models.chat import StructuredChat
from models.messages import Message, prompts_beside, user
from models.profile import Profile
from models.specs import IN_PROCESS
from retrieval.retrievers import Retrievers
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

    It is the profile's own for the role, else the one that answers, unless that runs in this
    process: such a model is too small to judge.
    """
    if ROLE not in profile.chat and profile.reasoner != "llm":
        return ""
    try:
        spec = profile.chat_for(ROLE)
    except SetupError:
        return ""
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
    Calls to the judge are recorded with the trajectory, and not repeated for the same answer.
    """
    with workspace.store.begin() as session:
        answer = find_trajectory(session, trajectory).answer
    if answer is None:
        raise ValueError(f"trajectory {trajectory} has no answer to judge")
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
