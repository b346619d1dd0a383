"""The evaluation as a Prefect flow: a task per video and question; learning is a subflow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from prefect import flow, tags, task
from prefect.futures import PrefectFuture
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from flows.evaluation_steps import Evaluation
from flows.evaluation_steps import run_evaluation as run_steps
from flows.in_process_run import InProcess
from flows.ingest import RETRIES
from flows.learning import learn_in_batches
from flows.workspace import Workspace
from services.library_tag import library_id, library_tag_name
from services.stale_runs import label_run, mark_killed_runs
from store.queries.evaluations import Slot


@task(name="ingest", task_run_name="ingest {video}", **RETRIES)
def ingest_video(evaluation: Evaluation, video: str) -> None:
    """Ingest a video unless it is in memory."""
    evaluation.ingest(video)


@task(name="ask", task_run_name="ask {question}", **RETRIES)
def ask_question(evaluation: Evaluation, slot: Slot, question: str) -> None:  # noqa: ARG001 - names it
    """Answer a question and judge the answer."""
    evaluation.answer(slot)


class PrefectEvalSteps:
    """The steps as Prefect tasks."""

    def ingest(self, evaluation: Evaluation, video: str) -> None:
        """Run the task in this thread."""
        ingest_video(evaluation, video)

    def answer(self, evaluation: Evaluation, slots: Sequence[Slot]) -> None:
        """Run the tasks in the threads of the task runner."""
        for future in [ask_question.submit(evaluation, slot, slot.question) for slot in slots]:
            future.result()

    def learn(self, evaluation: Evaluation, batch: int) -> None:
        """Run the learning flow as a subflow."""
        learn(batch, InProcess(evaluation.desk))


@flow(name="evaluate", flow_run_name="{name}", validate_parameters=False)
def evaluate(name: str, opened: InProcess[Evaluation]) -> None:  # noqa: ARG001 - names the run
    """Run an evaluation that is open in this process: every video, then batch after batch."""
    label_run()
    run_steps(opened.get(), PrefectEvalSteps())


def run_evaluation_flow(evaluation: Evaluation, workers: int) -> None:
    """Run the flow for an evaluation; mark killed runs of it first."""
    tag = f"eval:{evaluation.name}"
    library = library_id(evaluation.desk.store)
    mark_killed_runs(library, tag)
    runner = cast("TaskRunner[PrefectFuture[Any]]", ThreadPoolTaskRunner[Any](max_workers=workers))
    with tags(tag, library_tag_name(library)):
        evaluate.with_options(task_runner=runner)(evaluation.name, InProcess(evaluation))


@flow(name="learn", flow_run_name="after batch {batch}", validate_parameters=False)
def learn(batch: int, opened: InProcess[Workspace]) -> int:  # noqa: ARG001 - names the run
    """Learn from every answer judged since the last time; return how many there were."""
    label_run()
    return sum(result.answers for result in learn_in_batches(opened.get()))
