"""Telemetry spans of a question's rounds, each around the steps that belong to it."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from telemetry import tracing

STEPS = frozenset({"act", "guard", "retrieve", "bind", "assess", "record", "answer"})
"""The steps that a round is made of, from its action on."""


class Rounds:
    """The span of the open round, if any."""

    def __init__(self) -> None:
        self._number = 0
        self._open: tracing.Span | None = None

    def during(self, step: str, number: int) -> AbstractContextManager[object]:
        """Surround a step; the first of a round begins its span, the first after it ends it."""
        if step not in STEPS:
            self.end()
            return nullcontext()
        if self._open is None or number != self._number:
            self.end()
            self._number = number
            self._open = tracing.begin(tracing.Work.ROUND, round=number)
        return self._open.inside()

    def end(self, error: BaseException | None = None) -> None:
        """End the open round's span."""
        if self._open is not None:
            self._open.end(error)
            self._open = None
