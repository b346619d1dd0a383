"""Runs that are killed at a fault point."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from domain import faults
from domain.faults import FaultPoint


@contextmanager
def killed_at(patch: pytest.MonkeyPatch, point: FaultPoint, time: int) -> Iterator[None]:
    """What runs in the block is broken off when it comes to a point for the nth time, from 1."""
    passed = 0

    def dies(here: FaultPoint) -> None:
        nonlocal passed
        passed += here is point
        if here is point and passed == time:
            raise KeyboardInterrupt

    patch.setattr(faults, "fault_point", dies)
    with pytest.raises(KeyboardInterrupt):
        yield
    patch.setattr(faults, "fault_point", lambda _: None)
