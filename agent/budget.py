"""The budget of a run: the tokens and seconds it has spent, both with a hard limit."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from domain.settings import AskSettings
from domain.trajectory import ModelCalled, TimeUp
from domain.words import marked

if TYPE_CHECKING:
    from agent.recorder import Recorder


class RunBudget:
    """The tokens and seconds of a run, counted on from where an interrupted one stopped.

    ``now`` returns monotonic seconds. ``looks`` counts how often a decision depended on the clock;
    the look at which time is up is recorded, so that the run can be repeated without a clock.
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
        self._late = False
        self._recorder: Recorder | None = None

    def add(self, tokens_in: int, tokens_out: int) -> None:
        """Count the tokens of a model call."""
        self.tokens += tokens_in + tokens_out
        self.largest = max(self.largest, tokens_in + tokens_out)

    def follow(self, recorder: Recorder, looks: int) -> None:
        """Restore from a recorder's events the largest call and whether time is up.

        The recorder is told when time runs out. While it repeats a record, time is up where it was
        up before.
        """
        self._recorder, recorder.clock, self.looks = recorder, lambda: self.clock, looks
        for event in recorder.events:
            if isinstance(event, ModelCalled):
                self.largest = max(self.largest, event.tokens_in + event.tokens_out)
            self._late = self._late or isinstance(event, TimeUp)

    @property
    def clock(self) -> float:
        """Return the seconds spent."""
        return self._now() - self._started

    @property
    def seconds_left(self) -> float:
        """Return the seconds until the deadline; 0 when it has passed."""
        return max(0.0, self._settings.seconds - self.clock)

    @property
    def tokens_left(self) -> int:
        """Return how many tokens may still be spent."""
        return max(0, self._settings.tokens - self.tokens)

    def gone(self) -> str:
        """Name the budget that is exhausted; "" while both suffice for another call.

        A call may take as many tokens as the largest so far, and as many again are reserved for the
        final answer.
        """
        return self._short_of(2 * self.largest, late=self.late())

    def gone_for_tool(self) -> str:
        """Name the budget that is exhausted, as ``gone`` does, for a call that a tool makes.

        This look at the clock is not counted: a replay takes what the tool found from the record.
        """
        return self._short_of(2 * self.largest, late=self.late_for_tool())

    def final_answer_exhausted(self) -> str:
        """Name the budget that is exhausted for the final answer, which may use the reserve."""
        return self._short_of(self.largest, late=self.late())

    def late(self) -> bool:
        """Check whether the seconds are spent; once they are, it stays so."""
        self.looks += 1
        if not self._late and self._is_over():
            self._late = True
            if self._recorder is not None:
                self._recorder.add(TimeUp(round=self._recorder.round, look=self.looks))
        return self._late

    def late_for_tool(self) -> bool:
        """Check whether the seconds are spent; unlike ``late``, it is not counted or recorded."""
        return self._late or self._is_over()

    def _is_over(self) -> bool:
        ahead = self._recorder.ahead if self._recorder else None
        if ahead is not None:
            return isinstance(ahead, TimeUp) and ahead.look <= self.looks
        return self.seconds_left <= 0

    def _short_of(self, tokens: int, *, late: bool) -> str:
        if late:
            return marked(f"the {self._settings.seconds:g} seconds are spent")
        if self.tokens_left <= 0 or self.tokens_left < tokens:
            return marked(f"the {self._settings.tokens} tokens are spent")
        return ""
