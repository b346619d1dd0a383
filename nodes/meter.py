"""What a run has spent of its budgets: tokens and seconds, both hard."""

from __future__ import annotations

import time
from collections.abc import Callable

from domain.settings import AskSettings


class Meter:
    """Counts from where an interrupted run stopped. ``now`` gives seconds that only go forward."""

    def __init__(
        self,
        settings: AskSettings,
        tokens: int = 0,
        clock: float = 0.0,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings, self._now = settings, now
        self._started = now() - clock
        self.tokens = tokens
        self.largest = 0

    def add(self, tokens_in: int, tokens_out: int) -> None:
        """Count a model call."""
        self.tokens += tokens_in + tokens_out
        self.largest = max(self.largest, tokens_in + tokens_out)

    @property
    def clock(self) -> float:
        """Seconds spent."""
        return self._now() - self._started

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline; 0 when it has passed."""
        return max(0.0, self._settings.seconds - self.clock)

    @property
    def tokens_left(self) -> int:
        """Tokens that may still be spent."""
        return max(0, self._settings.tokens - self.tokens)

    def gone(self) -> str:
        """Which budget is gone, in words; empty while there is enough of both for a call.

        A call may take as much as the largest so far, and as much again is held back for the
        final answer.
        """
        return self._short_of(2 * self.largest)

    def all_gone(self) -> str:
        """The same for the final answer, which may take what was held back."""
        return self._short_of(self.largest)

    def _short_of(self, tokens: int) -> str:
        if self.seconds_left <= 0:
            return f"the {self._settings.seconds:g} seconds are spent"
        if self.tokens_left <= 0 or self.tokens_left < tokens:
            return f"the {self._settings.tokens} tokens are spent"
        return ""
