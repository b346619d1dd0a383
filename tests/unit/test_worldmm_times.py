"""Times that queries name, in the ways that questions and models write them."""

from __future__ import annotations

import pytest

from domain.time import TimeSpan
from strategies.worldmm.replies import find_span

DAY, HOUR, MINUTE = 86_400, 3_600, 60
AT_18_34 = DAY + 18 * HOUR + 34 * MINUTE


@pytest.mark.parametrize(
    ("text", "start_s", "end_s"),
    [
        ("12:30", 750, 750),
        ("12:30 - 12:50", 750, 770),
        ("12:30-12:50", 750, 770),
        ("What is on the table from 12:30 to 12:50?", 750, 770),
        ("1:02:03 – 1:04:00", HOUR + 123, HOUR + 240),
        ("DAY 2 18:34:01 - 18:34:29", AT_18_34 + 1, AT_18_34 + 29),
        ("DAY2, 18:34 - DAY2, 18:35", AT_18_34, AT_18_34 + 60),
        ("d2 18:34:01-d3 18:34:01", AT_18_34 + 1, AT_18_34 + DAY + 1),
        ("the kitchen on day 2 at 18:34", AT_18_34, AT_18_34),
        ("12:50 - 12:30", 770, 770),
        ("[03:14] somebody reads", 194, 194),
    ],
)
def test_a_time_is_read_as_it_is_meant(text: str, start_s: int, end_s: int) -> None:
    assert find_span(text) == TimeSpan.of(start_s * 1000, end_s * 1000)


@pytest.mark.parametrize(
    "text", ["", "the red car", "at noon", "day 2", "12", "12:3", "ratio 1:2:3:4", "v1.12:30:1.5"]
)
def test_what_names_no_time_is_none(text: str) -> None:
    assert find_span(text) is None
