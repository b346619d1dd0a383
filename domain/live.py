"""What a run tells who watches it: its events, and between them the words of a reply."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from domain.base import Frozen
from domain.trajectory import Event


class PartialReply(Frozen):
    """A reply that is being written: ``text`` is all of it so far, as the model writes it.

    It is on no record: the call that it ends in is.
    """

    kind: Literal["said"] = "said"
    round: int
    purpose: str
    text: str


RunEvent = Event | PartialReply
RunListener = Callable[[RunEvent], None]
"""Is given every event as it happens. It may be called from another thread while a model writes."""
