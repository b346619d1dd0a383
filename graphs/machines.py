"""The machines by name, as strategies name the one that they run on."""

from __future__ import annotations

from agent.strategy import Strategy
from domain.errors import InputError
from graphs.homer import HOMER
from graphs.machine import Machine
from graphs.tool_loop import TOOL_LOOP

MACHINES = {"homer": HOMER, "tool_loop": TOOL_LOOP}


def machine_of(strategy: Strategy) -> Machine:
    """Return the machine that a strategy runs on.

    Raises:
        InputError: there is no such machine.
    """
    machine = MACHINES.get(strategy.machine)
    if machine is None:
        known = ", ".join(MACHINES)
        raise InputError(f"the strategy {strategy.name} runs on {strategy.machine!r}: use {known}")
    return machine
