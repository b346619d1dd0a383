"""What single searches take of an embeddings endpoint: on record, and shown with what they find.

Those of questions are on record with their trajectory.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from domain.calls import CallRecord
from domain.moments import SearchCost
from models.text_endpoint import recorded_embeddings
from store.queries.trajectories import SEARCH, add_call, usage_of_searches

if TYPE_CHECKING:
    from store.database import Store


class CountedSearch:
    """What one search took so far: its requests."""

    def __init__(self) -> None:
        self.calls: list[CallRecord] = []

    @property
    def usage(self) -> SearchCost:
        """Their number, tokens and cost."""
        return SearchCost(
            requests=len(self.calls),
            tokens=sum(call.tokens_in for call in self.calls),
            cost_usd=sum(call.cost_usd for call in self.calls),
        )


@contextmanager
def recorded_search(store: Store) -> Iterator[CountedSearch]:
    """Record the requests to an embeddings endpoint that a search makes within, once it ends.

    Their texts are not part of the record. They are of no video: a search may be over all.
    """
    cost = CountedSearch()
    try:
        with recorded_embeddings(cost.calls.append):
            yield cost
    finally:
        if cost.calls:
            with store.begin() as session:
                for call in cost.calls:
                    add_call(session, replace(call, purpose=SEARCH))


def searches_so_far(store: Store) -> SearchCost:
    """Return what all single searches on record took."""
    with store.begin() as session:
        return usage_of_searches(session)
