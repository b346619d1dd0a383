"""Where a moment lies: video time on a grid of 30 seconds, and how well what was found fits it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

CELL_S = 30
"""Seconds of a cell."""
TOUCH_S = 1e-3
"""A retrieved span ends before its end: one that stops where a cell begins is not in that cell."""
JUDGED = 3
"""Retrieved spans that temporal IoU looks at."""

Span = tuple[float, float]
"""Start and end in seconds of video time."""
Cells = frozenset[int]


def cells(spans: Iterable[Span]) -> Cells:
    """The cells that the spans touch, the cells of both ends among them."""
    return frozenset(
        cell for start, end in spans for cell in range(int(start // CELL_S), int(end // CELL_S) + 1)
    )


def cells_found(span: Span) -> Cells:
    """The cells of a retrieved span, which is half-open."""
    start, end = span
    return cells([(start, max(start, end - TOUCH_S))])


def is_found(retrieved: Sequence[Span], target: Cells, first: int) -> bool:
    """Whether one of the ``first`` spans (best first) touches the target."""
    return any(cells_found(span) & target for span in retrieved[:first])


def temporal_iou(retrieved: Sequence[Span], target: Cells, first: int = JUDGED) -> float:
    """Cells that the ``first`` spans share with the target, over the cells of both, in [0, 1]."""
    found = frozenset[int]().union(*map(cells_found, retrieved[:first]))
    return len(found & target) / max(1, len(found | target))
