"""Scores of answers to questions about a week, and their summaries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from evals.grid import Cells, Span, is_found, temporal_iou
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
