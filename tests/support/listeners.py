"""A listener that collects the events and partial replies of a run."""

from __future__ import annotations

from domain.trajectory import Event, PartialReply, RunEvent, RunListener


def collect_events(events: list[Event], said: list[PartialReply] | None = None) -> RunListener:
    """Append the events of a run to ``events``, and partial replies to ``said``."""

    def collect(output: RunEvent) -> None:
        if not isinstance(output, PartialReply):
            events.append(output)
        elif said is not None:
            said.append(output)

    return collect
