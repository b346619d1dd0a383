"""Video time on a grid of 30 seconds, and how well retrieved spans match target cells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

CELL_S = 30
"""Length of a cell in seconds."""
TOUCH_S = 1e-3
"""Retrieved spans are half-open: one that stops where a cell begins is not in that cell."""
JUDGED = 3
"""How many retrieved spans temporal IoU considers."""

Span = tuple[float, float]
"""Start and end in seconds of video time."""
Cells = frozenset[int]


def cells(spans: Iterable[Span]) -> Cells:
    """Return the cells that the spans touch, including the cells of both ends."""
    return frozenset(
        cell for start, end in spans for cell in range(int(start // CELL_S), int(end // CELL_S) + 1)
    )


def cells_found(span: Span) -> Cells:
    """Return the cells of a retrieved span, which is half-open."""
    start, end = span
    return cells([(start, max(start, end - TOUCH_S))])


def is_found(retrieved: Sequence[Span], target: Cells, first: int) -> bool:
    """Check whether one of the ``first`` spans (best first) touches the target."""
    return any(cells_found(span) & target for span in retrieved[:first])


def temporal_iou(retrieved: Sequence[Span], target: Cells, first: int = JUDGED) -> float:
    """Return the IoU of the cells of the ``first`` spans and the target, in [0, 1]."""
    found_cells = frozenset[int]().union(*map(cells_found, retrieved[:first]))
    return len(found_cells & target) / max(1, len(found_cells | target))
