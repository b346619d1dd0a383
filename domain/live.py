"""What a run reports while it is going: its events, and replies as they are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from domain.base import Frozen
from domain.trajectory import Event


class PartialReply(Frozen):
    """A reply while a model writes it: ``text`` is all of it so far.

    It is not recorded: the call that results is.
    """

    kind: Literal["said"] = "said"
    round: int
    purpose: str
    text: str


RunEvent = Event | PartialReply
RunListener = Callable[[RunEvent], None]
"""Receives every event as it happens, possibly from another thread while a model writes."""
