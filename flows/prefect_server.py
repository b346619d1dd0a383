"""``python -m flows.prefect_server``: Prefect's server, whose scheduler works with this SQLAlchemy.

From 2.1 on SQLAlchemy refuses a bulk insert that names a hybrid property which does not say how it
is inserted; before, it passed it over. Prefect 3.8 inserts the runs of schedules so, and no run
of any schedule would ever begin. Prefect 3.9.1 leaves the property out itself.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any


def pass_over_state() -> None:
    """Has a bulk insert of runs pass over their state, which has a table of its own."""
    from prefect.server.database.orm_models import FlowRun, TaskRun

    for table in (FlowRun, TaskRun):
        state: Any = vars(table)["state"]
        state.bulk_dml_setter = state.bulk_dml_setter or _leave_out


def _leave_out(_table: type[Any], _row: MutableMapping[str, Any], _value: object) -> None:
    """The state stays with the row that it was inserted with; nothing else becomes of it."""


def main() -> None:
    """Runs Prefect's own command line."""
    from prefect.cli import app

    pass_over_state()
    app()


if __name__ == "__main__":
    main()
