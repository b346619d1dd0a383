"""The evaluation as a Prefect flow: a task per video and question; learning is a subflow."""

from __future__ import annotations

from prefect import flow, tags

from flows.evaluation_steps import Evaluation, run_evaluation
from flows.learning import learn_in_batches
from flows.prefect_executor import InProcess, PrefectExecutor, thread_runner
from flows.workspace import Workspace
from services.prefect import library_id, library_tag_name
from services.stale_runs import label_run, mark_killed_runs


@flow(name="evaluate", flow_run_name="{name}", validate_parameters=False)
def evaluate(
    name: str,  # noqa: ARG001 - names the run
    opened: InProcess[tuple[Evaluation, int]],
) -> None:
    """Run an evaluation that is open in this process, so many questions at a time."""
    label_run()
    evaluation, workers = opened.get()
    workspace = InProcess(evaluation.workspace)
    with thread_runner(workers) as runner:
        executor = PrefectExecutor(runner)
        run_evaluation(evaluation, executor, lambda batch: learn(batch, workspace))


def run_evaluation_flow(evaluation: Evaluation, workers: int) -> None:
    """Run the flow for an evaluation; mark killed runs of it first."""
    tag = f"eval:{evaluation.name}"
    library = library_id(evaluation.workspace.store)
    mark_killed_runs(library, tag)
    with tags(tag, library_tag_name(library)):
        evaluate(evaluation.name, InProcess((evaluation, workers)))


@flow(name="learn", flow_run_name="after batch {batch}", validate_parameters=False)
def learn(batch: int, opened: InProcess[Workspace]) -> int:  # noqa: ARG001 - names the run
    """Learn from every answer judged since the last time; return how many there were."""
    label_run()
    return sum(result.answers for result in learn_in_batches(opened.get()))
