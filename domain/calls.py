"""Calls to models, as they are made, recorded and counted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from domain.base import Frozen

if TYPE_CHECKING:
    from domain.trajectory import ModelCalled


@dataclass(frozen=True)
class CallRecord:
    """A call that was made; ``messages`` and ``reply`` are plain JSON.

    ``reply`` is ``{"text": ...}``, None if there was none. ``error`` is set if the call failed, or
    if the reply does not fit. It is of a ``clip`` of a video, of a trajectory, or of neither.
    """

    request_hash: str
    purpose: str
    profile: str
    model: str
    messages: Sequence[Mapping[str, Any]] = ()
    reply: Mapping[str, Any] | None = None
    error: str | None = None
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float = 0.0
    ms: int = 0
    video_id: str | None = None
    clip: int | None = None
    trajectory_id: str | None = None


class CallTotals(Frozen):
    """The totals of some calls. ``failed`` ones gave an error or an invalid reply.

    ``cost_usd`` counts where prices are known.
    """

    calls: int = 0
    failed: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float = 0.0
    ms: int = 0

    @staticmethod
    def of(calls: Iterable[CallRecord | ModelCalled]) -> CallTotals:
        counted = list(calls)
        return CallTotals(
            calls=len(counted),
            failed=sum(call.error is not None for call in counted),
            tokens_in=sum(call.tokens_in for call in counted),
            tokens_out=sum(call.tokens_out for call in counted),
            cost_usd=sum(call.cost_usd for call in counted),
            ms=sum(call.ms for call in counted),
        )

    def __add__(self, other: CallTotals) -> CallTotals:
        ours, theirs = self.model_dump(), other.model_dump()
        return CallTotals(**{name: ours[name] + theirs[name] for name in ours})

    def __mul__(self, times: float) -> CallTotals:
        counts = {name: round(value * times) for name, value in self if name != "cost_usd"}
        return CallTotals(cost_usd=self.cost_usd * times, **counts)

    def __str__(self) -> str:
        tokens = self.tokens_in + self.tokens_out
        cost = f", ${self.cost_usd:.4f}" if self.cost_usd else ""
        return f"{self.calls:,} calls, {tokens:,} tokens{cost}"
