"""Lanes of spans over the time of a video: drawn by the browser, worked by mouse and keyboard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from ui.parts import mount

TONES = ("", "second", "third", "fourth")
"""Colours of bars, all dark enough for white words."""


@dataclass(frozen=True)
class TimelineBar:
    """One span; ``label`` is read on hover and aloud, ``text`` stands on it where there is room."""

    id: str
    start: int
    end: int
    label: str
    text: str = ""
    tone: str = ""


@dataclass(frozen=True)
class Lane:
    """A line of bars under one name."""

    name: str
    spans: Sequence[TimelineBar]


@dataclass(frozen=True)
class Arc:
    """A link between two moments; ``tone`` is temporal or causal."""

    start: int
    end: int
    label: str
    tone: str
    id: str = ""


def packed(bars: Sequence[TimelineBar], most: int = 8) -> list[list[TimelineBar]]:
    """Bars in as few rows as needed, none over another; past ``most`` rows the last takes all."""
    rows: list[list[TimelineBar]] = []
    for bar in sorted(bars, key=lambda one: (one.start, one.end)):
        free = [row for row in rows if row[-1].end <= bar.start]
        if free:
            free[0].append(bar)
        elif len(rows) < most:
            rows.append([bar])
        else:
            rows[-1].append(bar)
    return rows


def timeline(
    name: str,
    length_ms: int,
    lanes: Sequence[Lane],
    key: str,
    *,
    chosen: str = "",
    arcs: Sequence[Arc] = (),
    arcs_name: str = "",
) -> str | None:
    """Draws lanes over ``length_ms``; returns the id of the bar that was picked just now."""
    data = {
        "name": name,
        "length": max(1, length_ms),
        "lanes": [asdict(lane) for lane in lanes],
        "arcs": [asdict(arc) for arc in arcs],
        "arcs_name": arcs_name,
        "chosen": chosen,
    }
    result = mount("timeline")(key=key, data=data, on_picked_change=_nothing)
    picked = getattr(result, "picked", None)
    return str(picked) if picked else None


def _nothing() -> None:
    """A picked bar draws the page again, which is all that is wanted."""
