"""Lanes of a timeline that show when people are seen and heard."""

from __future__ import annotations

from collections.abc import Sequence

from domain.marked import marked
from domain.time import TimeSpan
from domain.words import format_span, translate
from ui.timeline import Lane, TimelineBar

LEGEND = marked("Blue: seen. Green: heard. Click to play.")
LABELS = {"seen": marked("{name} is seen {time}"), "heard": marked("{name} is heard {time}")}
"""Names of a bar, by the sense."""


def appearance_lane(
    number: int, name: str, seen: Sequence[TimeSpan], heard: Sequence[TimeSpan]
) -> Lane:
    """Return the lane of a person; a bar's id has the number and the start in milliseconds."""
    bars = [
        *_bars(number, name, seen, "seen", "upper"),
        *_bars(number, name, heard, "heard", "second lower"),
    ]
    return Lane(name, bars)


def _bars(
    number: int, name: str, spans: Sequence[TimeSpan], sense: str, tone: str
) -> list[TimelineBar]:
    return [
        TimelineBar(
            f"{number}@{span.start_ms}",
            span.start_ms,
            span.end_ms,
            translate(LABELS[sense]).format(name=name, time=format_span(span)),
            tone=tone,
        )
        for span in spans
    ]


def picked_appearance(picked: str) -> tuple[int, int]:
    """Return the person and the moment in milliseconds of a bar that was clicked."""
    number, _, start = picked.partition("@")
    return int(number), int(start)
