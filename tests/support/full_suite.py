"""What ``pytest --full`` (``make test-all``) runs beyond the short suite."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import settings

SHORT = 10
FULL = 100
"""Examples of a property that names no number of its own."""


def in_full(case: object) -> Any:
    """Return a case that only ``--full`` runs; a tuple where the test has several parameters."""
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.full)


def sample(short: Iterable[object], full: Iterable[object]) -> list[Any]:
    """Return the cases of ``full``, of which the short suite runs those in ``short``."""
    chosen = list(short)
    return [case if case in chosen else in_full(case) for case in full]


def ends(found: Sequence[Any]) -> list[Any]:
    """Return the cases of ``found``, of which the short suite runs the first and the last."""
    return sample((found[0], found[-1]), found)


def is_full() -> bool:
    return settings.get_current_profile_name() != "short"


def examples(short: int, full: int) -> int:
    """Return how many examples of a property are tried in this run."""
    return full if is_full() else short
