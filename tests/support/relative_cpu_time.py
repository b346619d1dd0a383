"""CPU time in proportion to what a plain pattern takes, so that tests hold on any machine."""

from __future__ import annotations

import gc
import re
import time
from collections.abc import Callable
from functools import cache


def cpu(work: Callable[[], object]) -> float:
    """CPU seconds that ``work`` takes."""
    # Late in a run of all tests a collection walks what thousands of them left, and that is not
    # the work's time.
    gc.disable()
    try:
        began = time.process_time()
        work()
        return time.process_time() - began
    finally:
        gc.enable()


@cache
def per_character() -> float:
    """CPU seconds that finding words takes, for each character."""
    plain, text = re.compile(r"\w+"), "ab " * 100_000
    return min(cpu(lambda: plain.findall(text)) for _ in range(5)) / len(text)


def is_linear(work: Callable[[], object], length: int, times: float) -> bool:
    """Whether work on ``length`` characters takes at most ``times`` what finding words takes.

    It is measured again where it does not: machines are busy at times.
    """
    most = times * length * per_character()
    return any(cpu(work) <= most for _ in range(3))
