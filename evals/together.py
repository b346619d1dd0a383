"""Several data sets in one table, each measure with that of a baseline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import computed_field
from pydantic.dataclasses import dataclass

from evals.baseline import Closest
from evals.dataset import EvalQuestion
from evals.egolife import EgoReport
from evals.first import FirstReport
from evals.local import LocalReport, MediaQuestion
from evals.sampling import interval, mean
from evals.scores import PercentInterval, Summary
from evals.tables import RunReport

CLIPS, FIRST, WEEK = "local", "first", "egolife"
"""Data sets with an evaluation of their own."""


@dataclass(frozen=True)
class Measure:
    """One measure in percent with its interval, and the baseline's if there is one."""

    dataset: str
    measure: str
    questions: int
    ours: PercentInterval
    plain: PercentInterval | None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def above(self) -> float | None:
        """Return the points above the baseline."""
        return None if self.plain is None else self.ours.value - self.plain.value


def of_clips(report: LocalReport, closest: Closest, ids: Mapping[str, str]) -> Iterator[Measure]:
    """Yield right options compared with the closest line, and the first citations."""
    choices = [answer for answer in report.answers if answer.right is not None]
    if choices:
        plain = [
            _is_closest(closest, answer.question, ids[answer.question.video]) for answer in choices
        ]
        ours = [bool(answer.right) for answer in choices]
        yield Measure(CLIPS, "right option", len(choices), _figure(ours), _figure(plain))
    cited = [answer.cited for answer in report.answers]
    yield Measure(CLIPS, "first citation right", len(cited), _figure(cited), None)


def of_first(report: FirstReport) -> Iterator[Measure]:
    """Yield first questions that were right or rightly declined; they have no baseline."""
    good = [answer.right for answer in report.answers]
    sure = [answer.sure for answer in report.answers]
    yield Measure(report.of, "right or rightly declined", len(good), _figure(good), None)
    yield Measure(report.of, "wrong with high confidence", len(sure), _figure(sure), None)


def _is_closest(closest: Closest, media_question: MediaQuestion, video: str) -> bool:
    question = EvalQuestion(
        id=media_question.id,
        video=media_question.video,
        question=media_question.question,
        options=media_question.options,
    )
    return media_question.is_right(closest.option(question, video))


def of_week(report: EgoReport) -> Iterator[Measure]:
    """Yield what ``homer eval egolife`` measures, compared with one vector a clip."""
    ours, plain = _measures(report.every.homer), _measures(report.every.plain)
    for name, figure in ours.items():
        yield Measure(WEEK, name, report.every.homer.questions, figure, plain[name])


def _measures(totals: Summary) -> dict[str, PercentInterval]:
    tops = {f"target in top {top}": figure for top, figure in totals.found.items()}
    return {"right option": totals.accuracy, **tops, "temporal IoU": totals.iou}


def of_run(report: RunReport) -> Iterator[Measure]:
    """Yield all types of a run compared with its baseline."""
    for comparison in report.beside:
        both = comparison.effect.after, comparison.effect.before
        ours, plain = (
            None if f is None else PercentInterval(100 * f.value, 100 * f.low, 100 * f.high)
            for f in both
        )
        if ours is not None:
            name = f"right option, {comparison.type}"
            yield Measure(
                report.run.settings.dataset, name, comparison.effect.questions, ours, plain
            )


def _figure(hits: list[bool]) -> PercentInterval:
    values = [100.0 * hit for hit in hits]
    return (
        PercentInterval(mean(values), *interval(values))
        if values
        else PercentInterval(0.0, 0.0, 0.0)
    )
