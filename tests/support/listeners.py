"""Listening to a run: its events in one list, what its model says in another."""

from __future__ import annotations

from domain.trajectory import Event, PartialReply, RunEvent, RunListener


def collect_events(events: list[Event], said: list[PartialReply] | None = None) -> RunListener:
    """Tells what happens into ``events``, and a reply that grows into ``said``."""

    def tell(output: RunEvent) -> None:
        if not isinstance(output, PartialReply):
            events.append(output)
        elif said is not None:
            said.append(output)

    return tell
