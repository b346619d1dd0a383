"""A timeline of a video: lanes of spans, for mouse and keyboard, drawn by the browser."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from domain.words import counted, translate
from ui.components import component

TONES = ("", "second", "third", "fourth")
"""CSS classes of the colours of bars, all dark enough for white text."""


@dataclass(frozen=True)
class TimelineBar:
    """One span in ms; ``label`` is its tooltip and accessible name, ``text`` is drawn on it."""

    id: str
    start: int
    end: int
    label: str
    text: str = ""
    tone: str = ""


@dataclass(frozen=True)
class Lane:
    """A row of bars with a name."""

    name: str
    spans: Sequence[TimelineBar]


@dataclass(frozen=True)
class Arc:
    """A link between two moments in ms; ``tone`` is temporal or causal."""

    start: int
    end: int
    label: str
    tone: str
    id: str = ""


def pack_rows(bars: Sequence[TimelineBar], max_rows: int = 8) -> list[list[TimelineBar]]:
    """Pack bars into rows without overlaps; beyond ``max_rows`` rows the last takes the rest."""
    rows: list[list[TimelineBar]] = []
    for bar in sorted(bars, key=lambda bar: (bar.start, bar.end)):
        free = [row for row in rows if row[-1].end <= bar.start]
        if free:
            free[0].append(bar)
        elif len(rows) < max_rows:
            rows.append([bar])
        else:
            rows[-1].append(bar)
    return rows


def show_timeline(
    name: str,
    length_ms: int,
    lanes: Sequence[Lane],
    key: str,
    *,
    start_ms: int = 0,
    chosen: str = "",
    arcs: Sequence[Arc] = (),
    arcs_name: str = "",
) -> str | None:
    """Draw lanes from ``start_ms`` on; return the id of a bar or arc that was just clicked."""
    data = {
        "name": name,
        "start": start_ms,
        "length": max(1, length_ms),
        "lanes": [{"name": lane.name, "spans": [*map(vars, lane.spans)]} for lane in lanes],
        "arcs": [*map(vars, arcs)],
        "arcs_name": arcs_name,
        "arcs_label": translate("{links}; the list below has them in words").format(
            links=counted(len(arcs), "link")
        ),
        "chosen": chosen,
    }
    result = component("timeline")(key=key, data=data, on_picked_change=_ignore)
    picked = getattr(result, "picked", None)
    return str(picked) if picked else None


def _ignore() -> None:
    """Do nothing: a click reruns the page by itself."""
