"""Who writes in a step of a build, or in a tool: rules, or a language model by name."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from domain.built import RULES

_writers: ContextVar[list[str] | None] = ContextVar("step_writers", default=None)


@contextmanager
def step_writers() -> Iterator[list[str]]:
    """Yield a list that fills with who writes within, each once."""
    names: list[str] = []
    token = _writers.set(names)
    try:
        yield names
    finally:
        _writers.reset(token)


def note_writer(name: str) -> None:
    """Note who wrote; outside of a step nothing is noted."""
    names = _writers.get()
    if names is not None and name not in names:
        names.append(name)


def note_rules(log: logging.Logger, message: str, *args: object) -> None:
    """Log, and note, that rules wrote what the language model was to write."""
    log.warning(message, *args)
    note_writer(RULES)
