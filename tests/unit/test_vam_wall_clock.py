"""Times of day in VAM: read in questions, and found in the video time of a stream."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from pydantic import TypeAdapter, ValidationError

from domain.errors import InputError
from domain.time import TimeSpan
from strategies.vam.times import TimeRange, clock_words, resolve, timed_question

TIMES: TypeAdapter[TimeRange] = TypeAdapter(TimeRange)
BEGAN = datetime(2026, 1, 10, 12, 0, tzinfo=UTC)
"""Seven in the morning in New York."""
HOUR = 3_600_000
NOW = 30 * HOUR


@pytest.fixture(autouse=True)
def _in_new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def minutes(start: float, end: float) -> TimeSpan:
    return TimeSpan.of(round(start * 60_000), round(end * 60_000))


def found(**times: str) -> TimeSpan:
    return resolve(TIMES.validate_python({"kind": "clock", **times}), NOW, lambda _: [], BEGAN)


def test_a_time_of_day_is_that_of_this_machine_and_the_latest_before_now() -> None:
    assert found(start="8:30") == minutes(25.5 * 60, 25.5 * 60 + 1)
    assert found(start="14:05") == minutes(7 * 60 + 5, 7 * 60 + 6), "now is 13:00 on the next day"
    assert found(start="14:05", end="14:30") == minutes(7 * 60 + 5, 7 * 60 + 30)
    assert found(start="23:50", end="0:10") == minutes(16 * 60 + 50, 17 * 60 + 10)


def test_a_day_may_be_named() -> None:
    assert found(start="8:30", day="yesterday") == minutes(90, 91)
    assert found(start="8:30", day="2026-01-10") == minutes(90, 91)
    assert found(start="8:30", day="today") == minutes(25.5 * 60, 25.5 * 60 + 1)
    assert found(start="8:30", day="2026-01-01").length_ms == 0, "the stream had not begun"
    assert found(start="14:05", day="today").length_ms == 0, "it is in the future"


def test_without_a_start_on_record_it_is_refused() -> None:
    times = TIMES.validate_python({"kind": "clock", "start": "14:05"})
    with pytest.raises(InputError, match="not on record"):
        resolve(times, NOW, lambda _: [])


@pytest.mark.parametrize(
    "wrong",
    [
        {"start": "25:00"},
        {"start": "14:05", "end": "14:61"},
        {"start": "noon"},
        {"start": "14:05", "day": "2026-13-40"},
        {"start": "14:05", "day": "0001-01-01"},
        {"start": "14:05", "day": "9999-12-31"},
        {"start": "14:05", "zone": "UTC"},
    ],
)
def test_what_is_no_time_of_day_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        TIMES.validate_python({"kind": "clock", **wrong})


def test_a_span_is_named_with_its_day() -> None:
    assert clock_words(BEGAN, minutes(65, 67)) == "2026-01-10 08:05:00 to 08:07:00"
    over_midnight = clock_words(BEGAN, minutes(16.5 * 60, 17.5 * 60))
    assert over_midnight == "2026-01-10 23:30:00 to 2026-01-11 00:30:00"


@pytest.mark.parametrize(
    ("question", "start", "end", "day", "query"),
    [
        ("What happened at 14:05?", "14:05", "", "", ""),
        ("What was going on between 14:00 and 14:30?", "14:00", "14:30", "", ""),
        ("What happened yesterday at 2:05 pm?", "14:05", "", "yesterday", ""),
        ("Who rang from 9:00 to 9:15 am on 2026-01-11?", "9:00", "9:15", "2026-01-11", "Who rang?"),
        ("Was geschah gestern um 14:05 Uhr?", "14:05", "", "yesterday", ""),
        ("What happened between 11:30 and 12:30 pm?", "11:30", "12:30", "", ""),
        ("What happened from 10:00 to 1:00 am?", "22:00", "1:00", "", ""),
        ("What happened between 11:00 am and 1:00?", "11:00", "13:00", "", ""),
        ("What happened from 11:00 pm to 1:00?", "23:00", "1:00", "", ""),
        ("Who fixed the bike around 8:10:30?", "8:10:30", "", "", "Who fixed the bike?"),
    ],
)
def test_questions_name_times(question: str, start: str, end: str, day: str, query: str) -> None:
    read = timed_question(question)
    assert read is not None
    assert (read.times.start, read.times.end, read.times.day) == (start, end, day)
    assert read.query == query


@pytest.mark.parametrize(
    "question",
    [
        "When does the 10:15 train leave?",
        "What happened at 25:70?",
        "What happened at 1:02:03:04?",
        "What is the score of 3:1?",
        "Who came at noon?",
    ],
)
def test_other_questions_name_none(question: str) -> None:
    assert timed_question(question) is None
