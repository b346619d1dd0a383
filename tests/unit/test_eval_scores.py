"""Scores, their means and intervals, and what must be reached."""

from __future__ import annotations

import pytest

from cli.eval_bars import compared_rows
from evals.bars import Bar, all_met
from evals.egolife import BaselineComparison, EgoReport, Imported, StrategySummary
from evals.sampling import interval
from evals.scores import PercentInterval, Summary, cells, judge, summary


def test_a_summary_is_in_percent_with_intervals_around_the_means() -> None:
    target = cells([(10, 20)])
    scores = [judge(n < 30, [(0.0, 30.0)] if n % 2 else [], target) for n in range(40)]
    found = summary(scores)
    assert found.questions == 40
    assert found.accuracy.value == 75
    assert found.found[1].value == found.iou.value == 50
    assert 55 < found.accuracy.low < 75 < found.accuracy.high < 95


def test_an_interval_is_repeatable_holds_the_mean_and_narrows_with_more() -> None:
    few, many = [0.0, 1.0] * 10, [0.0, 1.0] * 500
    assert interval(few) == interval(few)
    low, high = interval(many)
    assert low < 0.5 < high
    assert high - low < interval(few)[1] - interval(few)[0]
    assert interval([]) == (0, 0)
    assert interval([3.0, 3.0]) == (3, 3)


@pytest.mark.parametrize(
    ("value", "most", "met"),
    [(10, False, True), (9.9, False, False), (10, True, True), (10.1, True, False)],
)
def test_a_bar_is_met_at_its_limit_and_on_its_side(value: float, most: bool, met: bool) -> None:
    assert Bar("figure", value, 10, most=most).met is met


def figure(value: float) -> PercentInterval:
    return PercentInterval(value, value, value)


def reached(
    accuracy: float, found: float, iou: float, took: float | None = None, ask_s: float = 60
) -> set[str]:
    """Names of the bars that such results miss, beside a baseline of 30, 10 and 4 percent."""

    def output(right: float, top: float, overlap: float) -> Summary:
        tops = {1: figure(0), 3: figure(top), 10: figure(0)}
        return Summary(250, figure(right), tops, figure(overlap))

    every = BaselineComparison(output(accuracy, found, iou), output(30, 10, 4))
    report = EgoReport(Imported("v", took), 250, {}, ask_s, "plain", every, {})
    return {bar.name.split(",")[0] for bar in report.bars if not bar.met}


def test_a_week_must_beat_the_baseline_in_all_three_ways_and_in_time() -> None:
    assert reached(36, 15, 6) == set()
    assert reached(35.9, 15, 6) == {"accuracy"}
    assert reached(36, 14.9, 6) == {"target in top 3"}
    assert reached(36, 15, 5.9) == {"temporal IoU"}
    assert reached(36, 15, 6, took=901) == {"import"}
    assert reached(36, 15, 6, took=899, ask_s=601) == {"asking"}


def test_each_answerer_is_shown_beside_the_baseline_with_its_slowest_answer() -> None:
    def output(top: float, overlap: float) -> Summary:
        return Summary(
            9, figure(30), {1: figure(0), 3: figure(top), 10: figure(0)}, figure(overlap)
        )

    every = BaselineComparison(output(15, 8), output(10, 4))
    other = {"other": StrategySummary(output(5, 4), 90.0, 2.96, 0)}
    report = EgoReport(
        Imported("v", None), 9, {}, 60, "plain", every, {}, other, None, slowest_s=1.26
    )
    assert [row[-4:] for row in compared_rows(report)] == [
        ("1.00", "1.00", "", ""),
        ("1.50", "2.00", "60", "1.3"),
        ("0.50", "1.00", "90", "3.0"),
    ]


def test_ratios_to_a_baseline_that_finds_nothing_are_not_met_by_chance() -> None:
    nothing = Summary(1, figure(0), {1: figure(0), 3: figure(0), 10: figure(0)}, figure(0))
    report = EgoReport(
        Imported("v", None), 1, {}, 1, "plain", BaselineComparison(nothing, nothing), {}
    )
    assert not all_met(report.bars)
