"""Temporal expressions, relative to the time of the question."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.heuristics.questions import DAY, HOUR, are_times, temporal_fit

NOON_3 = 2 * DAY + 12 * HOUR
"""Day 3, noon."""


def at(day: int, hour: float) -> float:
    return (day - 1) * DAY + hour * HOUR


def fit(text: str, *times: float, as_of: float = NOON_3) -> list[float]:
    found = temporal_fit(text, np.array(times), as_of)
    assert found is not None, text
    return [float(value) for value in found]


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("yesterday", at(2, 9), at(1, 9)),
        ("Yesterday morning", at(2, 8), at(2, 20)),
        ("yesterday at noon", at(2, 12.5), at(2, 20)),
        ("the day before yesterday", at(1, 15), at(2, 15)),
        ("the night before yesterday", at(1, 21), at(2, 21)),
        ("last night", at(2, 22), at(2, 12)),
        ("today", at(3, 8), at(2, 8)),
        ("this morning", at(3, 9), at(2, 9)),
        ("In the morning", at(3, 9), at(2, 9)),
        ("two days ago", at(1, 12), at(3, 11)),
        ("2 days ago in the evening", at(1, 20), at(1, 8)),
        ("an hour ago", NOON_3 - HOUR, NOON_3 - 5 * HOUR),
        ("3 hours ago", NOON_3 - 3 * HOUR, NOON_3 - 60),
        ("one and a half hours ago", NOON_3 - 1.5 * HOUR, NOON_3 - 5 * HOUR),
        ("20 minutes ago", NOON_3 - 20 * 60, NOON_3 - 3 * HOUR),
        ("half an hour ago", NOON_3 - 0.5 * HOUR, NOON_3 - 4 * HOUR),
        ("half a day ago", NOON_3 - 12 * HOUR, NOON_3 - HOUR),
        ("a day 2 hours ago", NOON_3 - 26 * HOUR, NOON_3 - 48 * HOUR),
        ("just now", NOON_3 - 60, NOON_3 - 6 * HOUR),
    ],
)
def test_a_temporal_expression_fits_its_time(text: str, inside: float, outside: float) -> None:
    within, beyond = fit(text, inside, outside)
    assert within > 0.9
    assert beyond < 0.1


def test_tonight_is_this_day_s_night() -> None:
    assert fit("tonight", at(3, 20), at(2, 20)) == [1.0, 0.0]


@pytest.mark.parametrize("text", ["Tasha", "on the table", "the red cup", "a day", "", "5"])
def test_text_without_a_time_gives_none(text: str) -> None:
    assert temporal_fit(text, np.array([0.0]), NOON_3) is None


@given(st.text(max_size=60), st.floats(min_value=0, max_value=10 * DAY))
def test_any_text_gives_memberships_or_none(text: str, as_of: float) -> None:
    found = temporal_fit(text, np.linspace(0, as_of, 7), as_of)
    if found is not None:
        assert ((found >= 0) & (found <= 1)).all()


@pytest.mark.parametrize(
    ("options", "output"),
    [
        (("Yesterday", "Today at noon", "Two days ago", "Last night"), True),
        (("Yesterday", "Two days ago", "Last night", "Never"), True),
        (("Tasha", "Lucia", "Yesterday", "Today"), False),
        (("Yesterday",), False),
        ((), False),
        (("She said that yesterday she would go to the market again",) * 3, False),
    ],
)
def test_options_that_are_times(options: tuple[str, ...], output: bool) -> None:
    assert are_times(options, NOON_3) is output
