"""The strategies as lists show them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.strategy import AUTO
from domain.marked import marked
from store.queries.builds import builders_in_library
from strategies.registry import all_strategies

if TYPE_CHECKING:
    from store.database import Store


def built_strategies(store: Store) -> list[str]:
    """Return the strategies whose memory is built of some video, or that need none of their own."""
    with store.begin() as session:
        built = builders_in_library(session)
    return [
        strategy.name
        for strategy in all_strategies()
        if strategy.builder is None or strategy.memory in built
    ]


def askable_titles() -> dict[str, str]:
    """Return the titles of what a question can be asked by, by name: strategies, and ``auto``."""
    titles = {strategy.name: strategy.title for strategy in all_strategies()}
    return titles | {AUTO: marked("what was learned for questions like it")}
