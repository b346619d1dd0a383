"""The strategies as lists show them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field, PositiveInt

from agent.strategy import AUTO
from domain.base import Frozen
from domain.marked import marked
from store.queries.builds import builders_in_library
from strategies.registry import all_strategies

if TYPE_CHECKING:
    from store.database import Store


class StrategyLine(Frozen):
    """A way of remembering and asking; see ``agent.strategy.Strategy``."""

    name: str
    title: str
    paper: str
    builds: str
    needs: str
    version: PositiveInt
    tools: tuple[str, ...]
    parts: dict[str, str] = Field(description="what NAME-without-PART switches off")


def list_strategies() -> tuple[StrategyLine, ...]:
    """Return all strategies, sorted by name."""
    return tuple(
        StrategyLine(
            name=strategy.name,
            title=strategy.title,
            paper=strategy.paper,
            builds=strategy.builds,
            needs=strategy.needs,
            version=strategy.version,
            tools=tuple(tool.name for tool in strategy.tools),
            parts=dict(strategy.parts),
        )
        for strategy in all_strategies()
    )


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
