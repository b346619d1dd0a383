"""An address of a page comes from anywhere: what fits is taken, all else is as if not there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import streamlit

from ui import navigation


class Query(dict[str, str]):
    """The parameters as Streamlit has them: the last of several, or all of them."""

    every: dict[str, list[str]]

    def get_all(self, name: str) -> list[str]:
        return self.every.get(name, [])


@pytest.fixture(autouse=True)
def query(monkeypatch: pytest.MonkeyPatch) -> Iterator[Query]:
    found = Query()
    found.every = {}
    monkeypatch.setattr(streamlit, "query_params", found)
    return iter([found])


@pytest.fixture
def asked(query: Iterator[Query]) -> Query:
    return next(query)


def test_only_so_much_of_a_value_is_looked_at(asked: Query) -> None:
    asked["q"] = "x" * 5_000
    asked.every["q"] = ["y" * 5_000] * 80
    assert len(navigation.text_param("q")) == navigation.MAX_PARAM_CHARS
    assert [len(one) for one in navigation.text_params("q")] == [navigation.MAX_PARAM_CHARS] * 50


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("0", 0),
        ("7", 7),
        ("007", 7),
        ("999999999", 999_999_999),
        ("1000000000", None),
        ("-1", None),
        (" 1", None),
        ("1_0", None),
        ("٣", None),
        ("²", None),
        ("", None),
    ],
)
def test_a_number_is_whole_and_not_too_low(asked: Query, value: str, number: int | None) -> None:
    asked["round"] = value
    assert navigation.int_param("round") == number
    assert navigation.int_param("round", 7) == (number or None)


@pytest.mark.parametrize(
    ("value", "ms"),
    [("125", 125_000), ("0:02:05", 125_000), ("d2 0:00:01", 86_401_000), ("soon", None)],
)
def test_a_moment_is_a_time_of_a_video(asked: Query, value: str, ms: int | None) -> None:
    asked["t"] = value
    assert navigation.time_param() == ms


def test_what_is_said_is_in_the_address_and_none_is_taken_out(asked: Query) -> None:
    navigation.set_params(video="0123", t=5, person=None)
    assert asked == {"video": "0123", "t": "5"}
    navigation.set_params(t=None, clip=0)
    assert asked == {"video": "0123", "clip": "0"}


@pytest.mark.parametrize(
    ("page", "offset"), [("", 0), ("1", 0), ("2", 25), ("4", 75), ("0", 0), ("-1", 0), ("x", 0)]
)
def test_a_page_begins_where_the_one_before_it_ended(asked: Query, page: str, offset: int) -> None:
    asked["page"] = page
    assert navigation.requested_offset() == offset


class Pages:
    """Streamlit's pages: the one that is wanted, unless another was chosen."""

    def __init__(self, chosen: int | None = None) -> None:
        self.chosen, self.captions = chosen, list[str]()

    def pagination(self, pages: int, default: int, key: str) -> int:
        assert 1 <= default <= pages
        return self.chosen or default

    def put(self, monkeypatch: pytest.MonkeyPatch) -> Pages:
        monkeypatch.setattr(streamlit, "pagination", self.pagination, raising=False)
        monkeypatch.setattr(streamlit, "caption", self.captions.append)
        return self


@pytest.mark.parametrize(
    ("total", "page", "offset", "caption"),
    [
        (0, "3", 0, []),
        (25, "2", 0, []),
        (26, "", 0, ["1 to 25 of 26"]),
        (26, "2", 25, ["26 to 26 of 26"]),
        (26, "99", 25, ["26 to 26 of 26"]),
        (75, "3", 50, ["51 to 75 of 75"]),
    ],
)
def test_a_long_list_is_shown_by_pages_and_a_short_one_without(
    asked: Query,
    monkeypatch: pytest.MonkeyPatch,
    total: int,
    page: str,
    offset: int,
    caption: list[str],
) -> None:
    asked["page"] = page
    shown = Pages().put(monkeypatch)
    assert navigation.paginate(total) == offset
    assert shown.captions == caption
