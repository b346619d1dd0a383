"""Learning as a Prefect flow, run after each batch of judged answers."""

from __future__ import annotations

from prefect import flow

from flows.desk import Desk
from flows.learning import learn_all
from skills.learn import Learned


@flow(name="learn", flow_run_name="after batch {batch}", validate_parameters=False)
def learn(desk: Desk, batch: int) -> list[Learned]:  # noqa: ARG001 - the run is named after it
    """Learn from every answer that was judged since the last time."""
    return list(learn_all(desk))
