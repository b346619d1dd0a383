"""Names of a library's schedules and flow runs on a Prefect server that several libraries share."""

from __future__ import annotations

from store.database import Store
from store.queries.blobs import own_library_id

LETTERS = 12
"""Letters of a library's id in names that people read; two with the same ones are improbable."""


def library_id(store: Store) -> str:
    """Return the id of a library, which only its restored back-ups share."""
    with store.begin() as session:
        return own_library_id(session)


def library_tag_name(library: str) -> str:
    """Return the tag of a library on Prefect's server."""
    return f"homer-library:{library}"


def work_pool_name(library: str) -> str:
    """Return the work pool that runs a library's jobs."""
    return f"homer-{library[:LETTERS]}"


def deployment_name(library: str, name: str) -> str:
    """Return the name of a library's schedule on Prefect's server, unique for its flow."""
    return f"{name}@{work_pool_name(library)}"


def schedule_name(deployment: str) -> str:
    """Return the name of a schedule in its library."""
    return deployment.rpartition("@")[0]
