"""What a run has spent of its budgets: tokens and seconds, both hard."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from domain.settings import AskSettings
from domain.trajectory import Event, ModelCalled, TimeUp

if TYPE_CHECKING:
    from agent.recorder import Recorder


class RunBudget:
    """Counts from where an interrupted run stopped. ``now`` gives seconds that only go forward.

    ``looks`` is how often a decision depended on the clock; ``on_late`` is told once, when time is
    up, at which look that was. With it the run can be done again without a clock.
    """

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
        self.looks = 0
        self.on_late: Callable[[int], None] | None = None
        self._late = False

    def add(self, tokens_in: int, tokens_out: int) -> None:
        """Count a model call."""
        self.tokens += tokens_in + tokens_out
        self.largest = max(self.largest, tokens_in + tokens_out)

    def recall(self, events: Iterable[Event], looks: int) -> None:
        """Know again what a run's earlier part knew: its largest call, and whether time is up."""
        self.looks = looks
        for event in events:
            if isinstance(event, ModelCalled):
                self.largest = max(self.largest, event.tokens_in + event.tokens_out)
            self._late = self._late or isinstance(event, TimeUp)

    def follow(self, recorder: Recorder, looks: int) -> None:
        """Know again what the recorder's run knew, and put on its record when time is up."""
        self.recall(recorder.events, looks)
        self.on_late = lambda look: recorder.add(TimeUp(round=recorder.round, look=look))

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

    def late(self) -> bool:
        """Whether the seconds are spent. Once they are, they stay so."""
        self.looks += 1
        if not self._late and self._is_over():
            self._late = True
            if self.on_late is not None:
                self.on_late(self.looks)
        return self._late

    def _is_over(self) -> bool:
        return self.seconds_left <= 0

    def _short_of(self, tokens: int) -> str:
        if self.late():
            return f"the {self._settings.seconds:g} seconds are spent"
        if self.tokens_left <= 0 or self.tokens_left < tokens:
            return f"the {self._settings.tokens} tokens are spent"
        return ""


class RecordedBudget(RunBudget):
    """A clock that stands still, and is over at the look at which it was over before."""

    def __init__(self, settings: AskSettings, tokens: int = 0, over_at: int | None = None) -> None:
        super().__init__(settings, tokens, now=lambda: 0.0)
        self._over_at = over_at

    def _is_over(self) -> bool:
        return self._over_at is not None and self.looks >= self._over_at
