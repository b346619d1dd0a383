"""Names of a library's schedules and flow runs on a Prefect server that several libraries share."""

from __future__ import annotations

from store.database import Store
from store.queries.blobs import library_of

LETTERS = 12
"""Letters of a library's id in names that people read; two with the same ones are improbable."""


def library_id(store: Store) -> str:
    """Return the id of a library, which only its restored back-ups share."""
    with store.begin() as session:
        return library_of(session)


def tag_of(library: str) -> str:
    """Return the tag of a library on Prefect's server."""
    return f"homer-library:{library}"


def pool_of(library: str) -> str:
    """Return the work pool that runs a library's jobs."""
    return f"homer-{library[:LETTERS]}"


def name_in(library: str, name: str) -> str:
    """Return the name of a library's schedule on Prefect's server, unique for its flow."""
    return f"{name}@{pool_of(library)}"


def name_of(deployment: str) -> str:
    """Return the name of a schedule in its library."""
    return deployment.rpartition("@")[0]
