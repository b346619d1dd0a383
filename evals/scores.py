"""Scores of answers to questions about a week, and their summaries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from evals.sampling import interval, mean

TOPS = (1, 3, 10)
"""How many of the retrieved moments count."""


@dataclass(frozen=True)
class WeekScore:
    """A scored answer: the option, whether the first moments touch a target, and the IoU."""

    right: bool
    found: Mapping[int, bool]
    iou: float


def judge(right: bool, retrieved: Sequence[Span], target: Cells) -> WeekScore:
    """Score an answer that retrieved these spans (best first)."""
    found_in_top = {top: is_found(retrieved, target, top) for top in TOPS}
    return WeekScore(right, found_in_top, temporal_iou(retrieved, target))


@dataclass(frozen=True)
class PercentInterval:
    """A mean in percent with the ends of its bootstrap interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Summary:
    """Means over questions, in percent."""

    questions: int
    accuracy: PercentInterval
    found: Mapping[int, PercentInterval]
    iou: PercentInterval


def summary(scores: Sequence[WeekScore]) -> Summary:
    """Summarise scores."""
    return Summary(
        questions=len(scores),
        accuracy=_figure(scores, lambda score: score.right),
        found={top: _figure(scores, partial(_found, top)) for top in TOPS},
        iou=_figure(scores, lambda score: score.iou),
    )


def _found(top: int, score: WeekScore) -> bool:
    return score.found[top]


def by_type(scores: Iterable[tuple[str, WeekScore]]) -> dict[str, Summary]:
    """Summarise scores by type of question, in the order of the types' names."""
    groups: dict[str, list[WeekScore]] = {}
    for kind, score in scores:
        groups.setdefault(kind, []).append(score)
    return {kind: summary(groups[kind]) for kind in sorted(groups)}


def _figure(scores: Sequence[WeekScore], of: Callable[[WeekScore], float]) -> PercentInterval:
    values = [100.0 * of(score) for score in scores]
    return PercentInterval(mean(values), *interval(values))


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
