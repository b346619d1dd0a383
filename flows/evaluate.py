"""The evaluate flow for Prefect: a task a video and a question; learning is a flow of its own."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any, cast

from prefect import flow, tags, task
from prefect.futures import PrefectFuture
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from flows.evaluation_steps import Evaluation
from flows.evaluation_steps import evaluate as in_order
from flows.ingest import RETRIES
from flows.learn import at_hand, learn
from services.library_tag import library_id, tag_of
from services.stale_runs import claim_run, mark_killed
from store.queries.evaluations import Slot

_at_hand: ContextVar[Evaluation] = ContextVar("evaluation at hand")


@task(name="ingest", task_run_name="ingest {video}", **RETRIES)
def ingest_video(work: Evaluation, video: str) -> None:
    """See that a video is in memory."""
    work.ingest(video)


@task(name="ask", task_run_name="ask {question}", **RETRIES)
def ask_question(work: Evaluation, slot: Slot, question: str) -> None:  # noqa: ARG001 - names it
    """Have a question answered and judged."""
    work.answer(slot)


class PrefectEvalSteps:
    """The steps as Prefect's tasks."""

    def ingest(self, work: Evaluation, video: str) -> None:
        """Here and now."""
        ingest_video(work, video)

    def answer(self, work: Evaluation, slots: Sequence[Slot]) -> None:
        """In the task runner's threads."""
        for one in [ask_question.submit(work, slot, slot.question) for slot in slots]:
            one.result()

    def learn(self, work: Evaluation, batch: int) -> None:
        """As a flow within the flow."""
        with at_hand(work.desk):
            learn(batch)


@flow(name="evaluate", flow_run_name="{name}", validate_parameters=False)
def evaluate(name: str) -> None:  # noqa: ARG001 - the run is named after it
    """Every video, then batch after batch, of the evaluation that is at hand."""
    claim_run()
    in_order(_at_hand.get(), PrefectEvalSteps())


def run(work: Evaluation, workers: int) -> None:
    """A flow run for the evaluation; runs of it that were killed are marked as such first."""
    tag = f"eval:{work.name}"
    library = library_id(work.desk.store)
    mark_killed(library, tag)
    runner = cast("TaskRunner[PrefectFuture[Any]]", ThreadPoolTaskRunner[Any](max_workers=workers))
    token = _at_hand.set(work)
    try:
        with tags(tag, tag_of(library)):
            evaluate.with_options(task_runner=runner)(work.name)
    finally:
        _at_hand.reset(token)
