"""An answer judged from every side: right or wrong, its moments, its citations, its fault."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy.orm import Session

from domain.asking import Answer
from domain.errors import HomerError, InputError
from domain.evaluation import ErrorType, Verdict
from evals.attribution import fault_of
from evals.dataset import EvalQuestion
from evals.judges.citations import judge_citations
from evals.judges.moments import judge_moments
from evals.judges.options import judge_options
from evals.judges.words import PURPOSE, ROLE, judge_model, judge_words
from flows.workspace import Workspace
from models.chat import CallRecord, Recorded, StructuredChat
from store.queries.calls import NewCall, add_call, find_call
from store.queries.texts import lines_within
from store.queries.trajectories import events_of, find_trajectory


def judge(desk: Workspace, question: EvalQuestion, video: str, trajectory: str) -> Verdict:
    """The verdict on the answer of a trajectory to a question about ``video``.

    Calls to the judge are recorded with the trajectory, and not made again for the same answer.
    """
    with desk.store.begin() as session:
        answer = find_trajectory(session, trajectory).answer
    if answer is None:
        raise ValueError(f"trajectory {trajectory} has no answer to judge")
    verdict = _right(desk, question, answer, trajectory)
    sides = {**judge_citations(question, answer, video), **judge_moments(question, answer, video)}
    judged = verdict.model_copy(update=sides)
    if judged.right is not False:
        return judged
    with desk.store.begin() as session:
        fault = _fault(session, question, video, trajectory)
    return judged.model_copy(update={"fault": fault})


def unanswered(error: HomerError, *, begun: bool = False) -> Verdict:
    """A question without an answer is wrong; where a model failed, it is tried again.

    So is one that was ``begun``, whatever is in its way.
    """
    failed = begun or not isinstance(error, InputError)
    return Verdict(right=False, judge="nobody", why=f"no answer: {error}", failed=failed)


def _right(desk: Workspace, question: EvalQuestion, answer: Answer, trajectory: str) -> Verdict:
    if question.options:
        return judge_options(question, answer)
    model = judge_model(desk.profile)
    return judge_words(question, answer, model, _chat_of(desk, trajectory))


def _chat_of(desk: Workspace, trajectory: str) -> Callable[[], StructuredChat]:
    """The judge's model; what it has said on this trajectory is served from the record."""

    def keep(call: CallRecord) -> None:
        with desk.store.begin() as session:
            add_call(session, NewCall(**vars(call), trajectory_id=trajectory))

    def known(request: str) -> Recorded | None:
        with desk.store.begin() as session:
            call = find_call(session, request, trajectory)
        if call is None or call.error is not None or call.purpose != PURPOSE:
            return None
        return Recorded(call.reply)

    return lambda: desk.toolbox.chat(ROLE, keep, known, live=True)


def _fault(session: Session, question: EvalQuestion, video: str, trajectory: str) -> ErrorType:
    scopes = find_trajectory(session, trajectory).view.scopes
    scope = next(one for one in scopes if one.video == video)
    remembered = lines_within(session, scope, question.spans) if question.spans else []
    return fault_of(question, video, events_of(session, trajectory), remembered)
