"""All that Prefect does not document and Homer uses; ``test_prefect_environment.py`` checks it.

Import Prefect inside functions only: its environment is set first.
"""

from __future__ import annotations

from contextlib import suppress
from queue import Empty
from typing import Any


def drain_events(timeout_s: float) -> None:
    """Stop Prefect's event worker, which is bound to the first server that it connected to.

    With its server gone, the worker would retry every event for seconds, and the process could
    not exit. Events that are not sent within ``timeout_s`` seconds are dropped.
    """
    from prefect._internal.concurrency.services import _active_services
    from prefect.events.worker import EventsWorker

    workers = [service for service in _active_services if isinstance(service, EventsWorker)]
    EventsWorker.drain_all(timeout=timeout_s, at_exit=False)
    for worker in workers:
        with suppress(Empty):
            while True:
                worker._queue.get_nowait()
        worker._queue.put_nowait(None)


def omit_state_in_bulk_inserts() -> None:
    """Omit the state of runs from bulk inserts, since it has a table of its own.

    From 2.1 on SQLAlchemy refuses a bulk insert with a hybrid property that has no setter for it;
    before, it ignored the property. Prefect 3.8 inserts scheduled runs that way, so that none would
    ever start. Prefect 3.9.1 omits the property itself.
    """
    from prefect.server.database.orm_models import FlowRun, TaskRun

    for table in (FlowRun, TaskRun):
        state: Any = vars(table)["state"]
        state.bulk_dml_setter = state.bulk_dml_setter or (lambda _table, _row, _value: None)
