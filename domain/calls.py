"""Calls to models, as they are made, recorded and counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


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
    messages: Sequence[Mapping[str, Any]]
    reply: Mapping[str, Any] | None
    error: str | None
    tokens_in: int
    tokens_out: int
    cost_usd: float
    ms: int
    video_id: str | None = None
    clip: int | None = None
    trajectory_id: str | None = None
