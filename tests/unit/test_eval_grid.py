"""The grid of 30 seconds, and how what was found is laid against it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.scores import cells, cells_found, is_found, temporal_iou

SPANS = st.tuples(st.floats(0, 7e5), st.floats(0, 300)).map(lambda s: (s[0], s[0] + s[1]))


@pytest.mark.parametrize(
    ("span", "touched"),
    [
        ((0, 0), {0}),
        ((29.9, 30), {0, 1}),
        ((30, 60), {1, 2}),
        ((31, 59), {1}),
        ((86_400, 86_401), {2880}),
        ((10, 100), {0, 1, 2, 3}),
    ],
)
def test_a_marked_span_touches_both_its_ends(span: tuple[float, float], touched: set[int]) -> None:
    assert cells([span]) == touched


@pytest.mark.parametrize(
    ("span", "touched"),
    [((30, 60), {1}), ((30, 60.5), {1, 2}), ((30, 30), {1}), ((0, 90), {0, 1, 2})],
)
def test_retrieved_span_stops_before_its_end(span: tuple[float, float], touched: set[int]) -> None:
    assert cells_found(span) == touched


def test_only_the_first_spans_count() -> None:
    retrieved = [(300.0, 330.0), (600.0, 630.0), (0.0, 30.0), (900.0, 930.0)]
    target = cells([(905, 905)])
    assert [is_found(retrieved, target, first) for first in (1, 3, 4)] == [False, False, True]
    assert is_found(retrieved, cells([(5, 5)]), 3)


def test_iou_is_shared_cells_over_all_cells_of_the_first_three() -> None:
    target = cells([(30, 59), (95, 95)])
    retrieved = [(30.0, 60.0), (300.0, 330.0), (300.0, 330.0), (95.0, 96.0)]
    assert temporal_iou(retrieved, target) == pytest.approx(1 / 3)
    assert temporal_iou(retrieved, target, first=4) == pytest.approx(2 / 3)
    assert temporal_iou([], target) == 0
    assert temporal_iou([], frozenset()) == 0


@given(st.lists(SPANS, max_size=5), st.lists(SPANS, min_size=1, max_size=3))
def test_iou_is_a_share_and_positive_exactly_where_something_is_found(
    retrieved: list[tuple[float, float]], marked: list[tuple[float, float]]
) -> None:
    target = cells(marked)
    share = temporal_iou(retrieved, target)
    assert 0 <= share <= 1
    assert (share > 0) == is_found(retrieved, target, 3)


@given(st.lists(SPANS, min_size=1, max_size=3))
def test_finding_just_the_target_is_all_of_it(marked: list[tuple[float, float]]) -> None:
    inside = [(start, end + 0.01) for start, end in marked]
    assert temporal_iou(inside, frozenset[int]().union(*map(cells_found, inside))) == 1
