"""Learning as a Prefect flow, run after each batch of judged answers."""

from __future__ import annotations

from prefect import flow

from flows.in_process_run import InProcess
from flows.learning import learn_in_batches
from flows.workspace import Workspace
from services.stale_runs import label_run


@flow(name="learn", flow_run_name="after batch {batch}", validate_parameters=False)
def learn(batch: int, opened: InProcess[Workspace]) -> int:  # noqa: ARG001 - names the run
    """Learn from every answer judged since the last time; return how many there were."""
    label_run()
    return sum(result.answers for result in learn_in_batches(opened.get()))
