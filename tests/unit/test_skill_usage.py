"""How finely use is told, and what could be expected of the questions that had a skill."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.skills import ComparisonKey, Share
from library.skills import expected_right, tally_unit

BEGUN = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("days", "unit"), [(0, "day"), (60, "day"), (61, "week"), (400, "week"), (401, "month")]
)
def test_long_use_is_reported_coarsely(days: int, unit: str) -> None:
    assert tally_unit(BEGUN, BEGUN + timedelta(days=days)) == unit


def test_only_like_is_compared_with_like() -> None:
    mine, other = (
        ComparisonKey("who", "local", "set", "one"),
        ComparisonKey("who", "gemini", "set", "two"),
    )
    every = {mine: Share(4, 1), other: Share(9, 9)}
    assert expected_right({mine: Share(4, 1)}, every) == 1
    assert expected_right({mine: Share(2, 1)}, every) == 0


@given(st.dictionaries(st.text(), st.tuples(st.integers(1, 50), st.integers(0, 50))))
def test_what_all_did_is_what_is_expected_of_all(every: dict[str, tuple[int, int]]) -> None:
    shares = {
        ComparisonKey(kind): Share(judged, min(judged, right))
        for kind, (judged, right) in every.items()
    }
    rights = sum(one.right for one in shares.values())
    assert expected_right(shares, shares) == pytest.approx(rights)
