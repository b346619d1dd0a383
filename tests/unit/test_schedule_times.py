"""When a schedule runs, as people write it: read, and told back in words that are read again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from domain.errors import InputError
from domain.schedules import MAX_INTERVAL_S, MIN_INTERVAL_S, When, parse_when


@pytest.mark.parametrize(
    ("text", "when", "words"),
    [
        ("every 5 minutes", When(every_s=300), "every 5 minutes"),
        ("every 90m", When(every_s=5400), "every 90 minutes"),
        ("every 30 s", When(every_s=30), "every 30 seconds"),
        ("Every  hour", When(every_s=3600), "every hour"),
        ("every 48 hours", When(every_s=172_800), "every 2 days"),
        ("every day", When(every_s=86_400), "every day"),
        ("daily 3:30", When(cron="30 3 * * *"), "daily 03:30"),
        ("daily at 23:05", When(cron="5 23 * * *"), "daily 23:05"),
        ("Sunday 00:00", When(cron="0 0 * * 0"), "sunday 00:00"),
        ("saturday 04:10", When(cron="10 4 * * 6"), "saturday 04:10"),
        ("*/5  8-18 * * 1-5", When(cron="*/5 8-18 * * 1-5"), "*/5 8-18 * * 1-5"),
    ],
)
def test_what_people_write_is_read_and_told_back(text: str, when: When, words: str) -> None:
    assert parse_when(text) == when
    assert str(when) == words


@pytest.mark.parametrize(
    "text",
    [
        *("", "now", "every", "every -5 minutes", "every 5 weeks", "every 1000000000000 days"),
        *("daily 24:00", "daily 3:60", "daily", "someday 03:00", "* * * *"),
        *("every 0 minutes", "every 9 seconds", "every 400 days"),
    ],
)
def test_what_says_no_time_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        parse_when(text)


@given(st.integers(MIN_INTERVAL_S, MAX_INTERVAL_S).map(lambda seconds: When(every_s=seconds)))
def test_an_interval_comes_back_as_it_was(when: When) -> None:
    assert parse_when(str(when)) == when


@given(st.text(max_size=40))
def test_no_text_does_harm(text: str) -> None:
    try:
        when = parse_when(text)
    except InputError:
        return
    assert parse_when(str(when)) == when


@pytest.mark.parametrize("output", [{}, {"every_s": 60, "cron": "* * * * *"}, {"every_s": 9}])
def test_there_is_one_way_to_say_when(output: dict[str, int | str]) -> None:
    with pytest.raises(ValidationError):
        When.model_validate(output)
