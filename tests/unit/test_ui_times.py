"""Times and sizes as pages show them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.time import TimeSpan, parse_clock
from domain.words import format_span, format_time
from ui.formatting import format_bytes, format_duration


@given(st.integers(0, 10**12))
def test_a_time_can_be_read_back(ms: int) -> None:
    assert parse_clock(format_time(ms)) == ms // 1000 * 1000


def test_an_instant_is_one_time() -> None:
    assert format_span(TimeSpan.of(2_000, 9_000)) == "0:02-0:09"
    assert format_span(TimeSpan.of(2_000, 2_500)) == "0:02"


@pytest.mark.parametrize(
    ("seconds", "output"),
    [
        (0, "0.0 s"),
        (8.24, "8.2 s"),
        (59.94, "59.9 s"),
        (59.96, "1 min 0 s"),
        (250, "4 min 10 s"),
        (3_599.6, "1 h 0 min"),
        (7_500, "2 h 5 min"),
    ],
)
def test_how_long_has_units(seconds: float, output: str) -> None:
    assert format_duration(seconds) == output


@pytest.mark.parametrize(
    ("size", "output"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1_000, "1.0 kB"),
        (999_940, "999.9 kB"),
        (999_960, "1.0 MB"),
        (3.1e6, "3.1 MB"),
        (999.96e6, "1.0 GB"),
        (2e15, "2000.0 TB"),
    ],
)
def test_room_has_units(size: float, output: str) -> None:
    assert format_bytes(size) == output
