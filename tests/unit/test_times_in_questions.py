"""Combinations of temporal expressions: memberships in [0, 1] that fit video time."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from retrieval.heuristics.questions import DAY, HOUR, Times, are_times, temporal_fit

NUMBERS = st.sampled_from(
    ["zero", "one", "two", "twelve", "a", "an", "0", "0.5", "3", "48", "1000"]
)
UNITS = st.sampled_from(["day", "days", "hour", "hours", "minute", "minutes", "min"])
PARTS = st.sampled_from(["morning", "noon", "afternoon", "evening", "night"])
AGO = st.builds(
    lambda n, unit, half, more: f"{n} {unit}{half}{more} ago",
    NUMBERS,
    UNITS,
    st.sampled_from(["", " and a half"]),
    st.sampled_from(["", " 3 hours", " 0 hours"]),
)
DAYS = st.builds(
    lambda word, part: word.replace("PART", part),
    st.sampled_from(
        [
            "yesterday PART",
            "the day before yesterday",
            "PART before yesterday",
            "this PART",
            "today",
            "last night",
            "tonight",
            "in the PART",
            "just now",
            "half a day ago",
            "half an hour ago",
        ]
    ),
    PARTS,
)
PHRASES = st.lists(AGO | DAYS, min_size=1, max_size=2).map(" or ".join)
AS_OF = st.sampled_from([0.0, 1.0, 59.0, HOUR, 13 * HOUR, DAY, 2.5 * DAY, 7 * DAY])


def week() -> Times:
    return np.arange(0, 7 * DAY, HOUR / 2)


@example("0 days 0 hours ago", HOUR)
@example("zero minutes ago", 0.0)
@given(PHRASES, AS_OF)
def test_every_temporal_expression_gives_memberships_without_a_warning(
    text: str, as_of: float
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit = temporal_fit(f"What was bought {text}?", week(), as_of)
    assert fit is not None
    assert fit.shape == week().shape
    assert np.isfinite(fit).all()
    assert ((fit >= 0) & (fit <= 1)).all()


@given(PHRASES, AS_OF)
def test_a_time_is_the_same_however_it_is_written(text: str, as_of: float) -> None:
    one, other = (temporal_fit(words, week(), as_of) for words in (text, f"  {text.upper()}!"))
    assert one is not None
    assert other is not None
    assert np.array_equal(one, other)


@given(st.integers(5, 48), st.sampled_from(["hours", "minutes"]))
def test_an_age_fits_best_at_its_time(count: int, unit: str) -> None:
    ago = count * (HOUR if unit == "hours" else 60.0)
    fit = temporal_fit(f"{count} {unit} ago", 7 * DAY - np.array([ago / 4, ago, ago * 4]), 7 * DAY)
    assert fit is not None
    assert fit[1] == pytest.approx(1)
    assert fit[1] > fit[0]
    assert fit[1] > fit[2]


@given(st.integers(1, 6), PARTS)
def test_days_back_are_whole_days_and_parts_of_them(back: int, part: str) -> None:
    as_of = 6 * DAY + 12 * HOUR
    noon = {"morning": 8, "noon": 12.5, "afternoon": 15, "evening": 20, "night": 22}[part] * HOUR
    days = np.arange(0, 7, dtype=np.float64) * DAY + noon
    fit = temporal_fit(f"{back} days ago in the {part}", days, as_of)
    assert fit is not None
    assert int(fit.argmax()) == 6 - back
    assert fit[6 - back] == 1


@pytest.mark.parametrize(
    ("text", "day", "hour"),
    [
        ("yesterday morning", 2, 9),
        ("the day before yesterday", 1, 12),
        ("evening before yesterday", 1, 20),
        ("last night", 2, 23),
        ("tonight", 3, 21),
        ("this morning", 3, 9),
        ("today", 3, 18),
    ],
)
def test_named_days_are_counted_from_the_moment_of_asking(text: str, day: int, hour: int) -> None:
    as_of = 3 * DAY + 20 * HOUR
    fit = temporal_fit(text, week(), as_of)
    assert fit is not None
    there = round((day * DAY + hour * HOUR) / (HOUR / 2))
    assert fit[there] == 1
    assert fit[there - 96 if there >= 96 else there + 96] < 1


@given(st.lists(PHRASES, min_size=1, max_size=4), st.lists(st.just("a red car"), max_size=4), AS_OF)
def test_options_are_times_where_nearly_all_of_them_are(
    times: list[str], others: list[str], as_of: float
) -> None:
    short = [one for one in times if len(one.split()) <= 8]
    output = are_times((*times, *others), as_of)
    count = len(times) + len(others)
    assert output == (count > 1 and len(short) >= 0.75 * count)
