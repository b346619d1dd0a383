"""The strategies: those folders beside this module whose ``strategy.py`` has a ``STRATEGY``."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules

import strategies
from agent.strategy import AUTO, WITHOUT, Strategy
from domain.errors import NotFound


def strategy_names() -> tuple[str, ...]:
    packages = (module.name for module in iter_modules(strategies.__path__) if module.ispkg)
    folders = (name for name in packages if find_spec(f"strategies.{name}.strategy"))
    return tuple(sorted(folder.replace("_", "-") for folder in folders))


def find_strategy(name: str) -> Strategy:
    """Return the strategy of that name; ``NAME-without-PART`` is one with a part switched off.

    Raises:
        NotFound: there is none, or it has no such part; the message lists those that there are.
    """
    names = strategy_names()
    whole, without, parts = name.partition(WITHOUT)
    if whole not in names:
        raise NotFound(f"there is no strategy {name!r}: use one of {', '.join(names)}")
    strategy = import_module(f"strategies.{whole.replace('-', '_')}.strategy").STRATEGY
    if not isinstance(strategy, Strategy) or strategy.name != whole:
        raise TypeError(f"strategies/{whole}/strategy.py has no STRATEGY of that name")
    return strategy.switched_off(parts) if without else strategy


def check_strategy(name: str) -> str:
    """Return the full name of a strategy that may be asked, or ``auto``.

    Raises:
        NotFound: there is none of that name.
    """
    return AUTO if name == AUTO else find_strategy(name).name


def strategies_with_outline() -> tuple[Strategy, ...]:
    """Return the strategies whose memory has an outline, sorted by name."""
    return tuple(strategy for strategy in all_strategies() if strategy.levels)


def strategy_of_outlines() -> Strategy:
    """Return the strategy whose memory outlines are printed of: the first by name that has any.

    Raises:
        NotFound: none has.
    """
    for strategy in strategies_with_outline():
        return strategy
    raise NotFound("no strategy's memory has an outline")


def all_strategies() -> tuple[Strategy, ...]:
    return tuple(map(find_strategy, strategy_names()))
