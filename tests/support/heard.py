"""Listening to a run: its events in one list, what its model says in another."""

from __future__ import annotations

from domain.live import Said, Tell, Told
from domain.trajectory import Event


def into(events: list[Event], said: list[Said] | None = None) -> Tell:
    """Tells what happens into ``events``, and a reply that grows into ``said``."""

    def tell(told: Told) -> None:
        if not isinstance(told, Said):
            events.append(told)
        elif said is not None:
            said.append(told)

    return tell
