"""Which library a schedule or a flow run belongs to: several may share a server of Prefect's."""

from __future__ import annotations

from store.database import Store
from store.queries.blobs import library_of

LETTERS = 12
"""Of a library's id in names that people read: two that begin alike are not to be expected."""


def library_id(store: Store) -> str:
    """The id of a library, which no other has but one that was restored from its back-up."""
    with store.begin() as session:
        return library_of(session)


def tag_of(library: str) -> str:
    """The tag of what is a library's on Prefect's server."""
    return f"homer-library:{library}"


def pool_of(library: str) -> str:
    """The work pool whose workers carry out what is a library's."""
    return f"homer-{library[:LETTERS]}"


def name_in(library: str, name: str) -> str:
    """What a library's schedule is called on Prefect's server, where a flow has each name once."""
    return f"{name}@{pool_of(library)}"


def name_of(deployment: str) -> str:
    """What a schedule is called in its library."""
    return deployment.rpartition("@")[0]
