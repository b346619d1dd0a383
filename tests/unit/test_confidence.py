"""Confidence in words, and the curves that calibrate it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from domain.asking import ConfidenceLevel, Curve, level_of_confidence

CURVE = Curve(raw=(0.2, 0.4, 0.8), right=(0.3, 0.5, 0.9))


@pytest.mark.parametrize(
    ("confidence", "word"),
    [
        (0.0, ConfidenceLevel.LOW),
        (0.39, ConfidenceLevel.LOW),
        (0.4, ConfidenceLevel.MEDIUM),
        (0.7, ConfidenceLevel.HIGH),
    ],
)
def test_confidence_has_a_word(confidence: float, word: ConfidenceLevel) -> None:
    assert level_of_confidence(confidence) is word


@pytest.mark.parametrize(
    ("raw", "share"),
    [(0.0, 0.3), (0.2, 0.3), (0.3, 0.4), (0.4, 0.5), (0.6, 0.7), (0.8, 0.9), (1.0, 0.9)],
)
def test_a_curve_is_straight_between_its_points_and_flat_beyond(raw: float, share: float) -> None:
    assert CURVE.at(raw) == pytest.approx(share)


@given(st.floats(0, 1))
def test_without_a_curve_raw_confidence_stays(raw: float) -> None:
    assert Curve().at(raw) == min(0.95, raw)


def test_nothing_is_surer_than_the_specification_allows() -> None:
    assert Curve(raw=(0.1, 0.9), right=(0.2, 1.0)).at(0.95) == 0.95


@pytest.mark.parametrize(
    ("raw", "right"),
    [
        ((0.1,), ()),
        ((0.2, 0.1), (0.3, 0.4)),
        ((0.1, 0.1), (0.3, 0.4)),
        ((0.1, 0.2), (0.4, 0.3)),
        ((0.1, 1.2), (0.3, 0.4)),
        ((0.1, float("nan")), (0.3, 0.4)),
    ],
)
def test_no_falling_curve_is_taken(raw: tuple[float, ...], right: tuple[float, ...]) -> None:
    with pytest.raises(ValidationError):
        Curve(raw=raw, right=right)
