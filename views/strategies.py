"""The strategies as lists show them."""

from __future__ import annotations

from pydantic import PositiveInt

from domain.base import Frozen
from strategies.registry import all_strategies


class StrategyLine(Frozen):
    """A way of remembering and asking; see ``agent.strategy.Strategy``."""

    name: str
    title: str
    paper: str
    builds: str
    needs: str
    version: PositiveInt
    tools: tuple[str, ...]


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
        )
        for strategy in all_strategies()
    )
