"""Judging: right or wrong, the moments, the citations, and the fault of a wrong answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from domain.asking import Answer, Mode
from domain.calls import CallRecord
from domain.errors import HomerError, InputError
from domain.evaluation import ErrorType, Verdict
from domain.memories import MemoryView
from domain.search import Aim
from evals.attribution import FAULT, fault_of, judged_fault, reference
from evals.dataset import EvalQuestion
from evals.judges.moments import judge_citations, judge_moments
from evals.judges.options import judge_options
from evals.judges.words import M3_BENCH, PURPOSE, ROLE, judge_model, judge_words
from flows.workspace import Workspace
from models.chat import Recorded, StructuredChat
from retrieval.retrievers import Retrievers
from store.queries.calls import add_call, find_call
from store.queries.memories import memories_within
from store.queries.trajectories import events_of, find_trajectory

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
    verdict = _right(workspace, question, answer, trajectory)
    measures: dict[str, Any] = {
        **judge_citations(question, answer, video),
        **judge_moments(question, answer, video),
    }
    if m3_bench and not question.options and (model := judge_model(workspace.profile)):
        chat = _chat_of(workspace, trajectory)
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
    if fault is ErrorType.UNKNOWN and told and judge_model(workspace.profile):
        search = Retrievers(workspace.store, workspace.toolbox, workspace.settings)
        aim = Aim(text=told, moments=CLOSEST, quotes=False)
        view = MemoryView(scopes=(scope,))
        closest = search.search(view, Mode.EVENT, told, aim=aim).evidence
        chat = _chat_of(workspace, trajectory)
        fault = judged_fault(question, answer, events, closest, chat)
    return judged.model_copy(update={"fault": fault})


def unanswered(error: HomerError, *, begun: bool = False) -> Verdict:
    """Judge a question without an answer wrong; after a model failure it is tried again.

    So is one that was ``begun``, whatever failed.
    """
    failed = begun or not isinstance(error, InputError)
    return Verdict(right=False, judge="nobody", why=f"no answer: {error}", failed=failed)


def _right(
    workspace: Workspace, question: EvalQuestion, answer: Answer, trajectory: str
) -> Verdict:
    if question.options:
        return judge_options(question, answer)
    model = judge_model(workspace.profile)
    return judge_words(question, answer, model, _chat_of(workspace, trajectory))


def _chat_of(workspace: Workspace, trajectory: str) -> Callable[[], StructuredChat]:
    """Return the judge's chat; recorded replies on this trajectory are reused."""

    def store_call(call: CallRecord) -> None:
        with workspace.store.begin() as session:
            add_call(session, replace(call, trajectory_id=trajectory))

    def recorded_reply(request: str) -> Recorded | None:
        with workspace.store.begin() as session:
            call = find_call(session, request, trajectory)
        if call is None or call.error is not None or call.purpose not in (PURPOSE, FAULT):
            return None
        return Recorded(call.reply)

    return lambda: workspace.toolbox.chat(ROLE, store_call, recorded_reply, live=True)
