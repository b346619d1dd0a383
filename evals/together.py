"""Several data sets in one table, each measure beside a baseline over the same questions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from evals.closest import Closest
from evals.dataset import EvalQuestion
from evals.egolife import EgoReport
from evals.first import FirstReport
from evals.local import LocalReport
from evals.media_questions import MediaQuestion
from evals.sampling import interval, mean
from evals.scores import PercentInterval, Summary
from evals.tables import RunReport

CLIPS, FIRST, WEEK = "local", "first", "egolife"
"""The data sets that have an evaluation of their own."""


@dataclass(frozen=True)
class Measure:
    """One measure in percent with its interval, ours and the baseline's, where it has one."""

    dataset: str
    measure: str
    questions: int
    ours: PercentInterval
    plain: PercentInterval | None

    @property
    def above(self) -> float | None:
        """Points above the baseline."""
        return None if self.plain is None else self.ours.value - self.plain.value


def of_clips(report: LocalReport, closest: Closest, ids: Mapping[str, str]) -> Iterator[Measure]:
    """Options beside the one that is closest to any remembered line; the moments cited first."""
    choices = [one for one in report.answers if one.right is not None]
    if choices:
        plain = [_is_closest(closest, one.question, ids[one.question.video]) for one in choices]
        ours = [bool(one.right) for one in choices]
        yield Measure(CLIPS, "right option", len(choices), _figure(ours), _figure(plain))
    cited = [one.cited for one in report.answers]
    yield Measure(CLIPS, "first citation right", len(cited), _figure(cited), None)


def of_first(report: FirstReport) -> Iterator[Measure]:
    """Questions as people ask first: right or rightly declined; nothing is their baseline."""
    good = [one.right for one in report.answers]
    sure = [one.sure for one in report.answers]
    yield Measure(FIRST, "right or rightly declined", len(good), _figure(good), None)
    yield Measure(FIRST, "wrong with high confidence", len(sure), _figure(sure), None)


def _is_closest(closest: Closest, asked: MediaQuestion, video: str) -> bool:
    question = EvalQuestion(
        id=asked.id, video=asked.video, question=asked.question, options=asked.options
    )
    return asked.is_right(closest.option(question, video))


def of_week(report: EgoReport) -> Iterator[Measure]:
    """What ``homer eval egolife`` measures, beside one vector a clip."""
    ours, plain = _measures(report.every.homer), _measures(report.every.plain)
    for name, figure in ours.items():
        yield Measure(WEEK, name, report.every.homer.questions, figure, plain[name])


def _measures(one: Summary) -> dict[str, PercentInterval]:
    tops = {f"target in top {top}": figure for top, figure in one.found.items()}
    return {"right option": one.accuracy, **tops, "temporal IoU": one.iou}


def of_run(report: RunReport) -> Iterator[Measure]:
    """All types of a run beside its baseline."""
    for one in report.beside:
        both = one.effect.after, one.effect.before
        ours, plain = (None if f is None else _percent(f.value, f.low, f.high) for f in both)
        if ours is not None:
            name = f"right option, {one.type}"
            yield Measure(report.settings.dataset, name, one.effect.questions, ours, plain)


def _percent(value: float, low: float, high: float) -> PercentInterval:
    return PercentInterval(100 * value, 100 * low, 100 * high)


def _figure(hits: list[bool]) -> PercentInterval:
    values = [100.0 * hit for hit in hits]
    return (
        PercentInterval(mean(values), *interval(values))
        if values
        else PercentInterval(0.0, 0.0, 0.0)
    )
