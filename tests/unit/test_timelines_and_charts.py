"""What pages give the browser to draw: lanes of bars, curves and columns, and their words."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import pytest
import streamlit
from hypothesis import given
from hypothesis import strategies as st

from domain.evaluation import QuestionPart
from domain.texts import WORD_JOINER
from evals.layout import ReportTable
from evals.tables import ALL, MeanInterval, Point, RunReport, TypeScore
from ui import charts, evaluation_report, player
from ui.player import Arc, Lane, TimelineBar, pack_rows

SPANS = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), max_size=25)


def bars_of(spans: list[tuple[int, int]]) -> list[TimelineBar]:
    return [TimelineBar(str(n), start, start + long, "") for n, (start, long) in enumerate(spans)]


@given(SPANS)
def test_no_bar_lies_over_another_where_there_are_rows_enough(spans: list[tuple[int, int]]) -> None:
    bars = bars_of(spans)
    rows = pack_rows(bars, max_rows=len(bars) + 1)
    assert sorted(one.id for row in rows for one in row) == sorted(one.id for one in bars)
    for row in rows:
        assert all(one.end <= then.start for one, then in pairwise(row))


@given(SPANS)
def test_there_are_only_as_many_rows_as_lie_over_each_other(spans: list[tuple[int, int]]) -> None:
    bars = [one for one in bars_of(spans) if one.end > one.start]
    at_once = [sum(o.start <= one.start < o.end for o in bars) for one in bars]
    assert len(pack_rows(bars, max_rows=100)) == max(at_once, default=0)


@given(SPANS, st.integers(1, 4))
def test_rows_are_few_and_nothing_is_lost(spans: list[tuple[int, int]], most: int) -> None:
    rows = pack_rows(bars_of(spans), most)
    assert len(rows) <= most
    assert sum(map(len, rows)) == len(spans)


def drawn(monkeypatch: pytest.MonkeyPatch, picked: object) -> tuple[str | None, dict[str, Any]]:
    """A timeline of nothing much: which bar was picked, and what the browser was given."""
    given: dict[str, Any] = {}

    class Result:
        def __init__(self) -> None:
            self.picked = picked

    def mount(part: str) -> Any:
        assert part == "timeline"
        return lambda **options: given.update(options) or Result()

    monkeypatch.setattr(player, "component", mount)
    lanes = [Lane("Ann", [TimelineBar("p1", 0, 5, "Ann, 0:00")])]
    arcs = [Arc(0, 5, "then", "temporal")]
    found = player.show_timeline("people", 0, lanes, "key", arcs=arcs, arcs_name="events")
    return found, given


@pytest.mark.parametrize(("picked", "output"), [("p1", "p1"), ("", None), (None, None), (7, "7")])
def test_the_bar_that_was_picked_is_reported(
    monkeypatch: pytest.MonkeyPatch, picked: object, output: str | None
) -> None:
    assert drawn(monkeypatch, picked)[0] == output


def test_the_browser_has_plain_data_and_some_length(monkeypatch: pytest.MonkeyPatch) -> None:
    data = drawn(monkeypatch, None)[1]["data"]
    assert data["length"] == 1
    (lane,) = data["lanes"]
    assert (lane["name"], lane["spans"][0]["label"]) == ("Ann", "Ann, 0:00")
    assert data["arcs"][0] | {"id": ""} == {
        "start": 0,
        "end": 5,
        "label": "then",
        "tone": "temporal",
        "id": "",
    }


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """What was put on the page: the kind of thing, and what it was made of."""
    put: list[tuple[str, Any]] = []
    for name in ("header", "caption", "html", "vega_lite_chart"):

        def show(*given: Any, name: str = name, **options: Any) -> None:
            put.append((name, given[0] if given else options))

        monkeypatch.setattr(streamlit, name, show)
    return put


ROWS = [{"day": "2026-01-01", "asked": 2}, {"day": "2026-01-02", "asked": 0}]


def spec_of(page: list[tuple[str, Any]]) -> dict[str, Any]:
    (made,) = [what for kind, what in page if kind == "vega_lite_chart"]
    found: dict[str, Any] = made["spec"]
    return found


def test_chart_has_its_numbers_and_says_in_words_what_it_shows(page: list[tuple[str, Any]]) -> None:
    charts.column_chart("Questions *a day*", ROWS, "day", "asked", "uses")
    spec = spec_of(page)
    assert spec["data"]["values"] == ROWS
    assert [spec["encoding"][axis]["field"] for axis in "xy"] == ["day", "asked"]
    assert page[0][1]["alt"] == "Questions *a day*"
    assert ("caption", r"Questions \*a day\*") in page


def test_shares_go_from_none_to_all_whatever_the_numbers_are(page: list[tuple[str, Any]]) -> None:
    charts.share_chart("Right", [{"day": "d", "right": 0.5}], "day", "right", "rights")
    axis = spec_of(page)["encoding"]["y"]
    assert axis["scale"]["domain"] == [0, 1]
    assert axis["axis"]["format"] == "%"


def test_words_of_a_table_are_data_and_heads_stay_apart(page: list[tuple[str, Any]]) -> None:
    charts.report_table(ReportTable("Runs [1](x)", ("run", "", ""), (("<i>a</i>", "b", "c"),)))
    assert page[0] == ("header", rf"Runs \[1\]{WORD_JOINER}\(x\)")
    kind, table = page[1]
    assert kind == "html"
    assert '<th scope="col">run</th><td></td><td></td>' in table
    assert "<td>&lt;i&gt;a&lt;/i&gt;</td><td>b</td><td>c</td>" in table


def figure(value: float) -> MeanInterval:
    return MeanInterval(value=value, low=value - 0.1, high=value + 0.1, of=4)


def point(
    arm: str, batch: int, so_far: float | None, part: QuestionPart = QuestionPart.TEST
) -> Point:
    right = None if so_far is None else figure(so_far)
    return Point(
        arm=arm, part=part, batch=batch, answers=4, right=right, so_far=right, given=0, in_use=0
    )


def score(kind: str, right: float | None, arm: str = "with") -> TypeScore:
    found = None if right is None else figure(right)
    return TypeScore(
        arm=arm,
        type=kind,
        questions=4,
        unjudged=0,
        right=found,
        cited=None,
        top=None,
        iou=None,
        ref300=None,
    )


def shown(page: list[tuple[str, Any]], points: list[Point], scores: list[TypeScore]) -> list[str]:
    """The headers over the curves of such a report."""
    report = SimpleNamespace(
        curve=tuple(points), scores=tuple(scores), main="with", reliability=(), usage=()
    )
    evaluation_report.show_curves(cast(RunReport, report))
    return [what for kind, what in page if kind == "header"]


LEARNED = [point("with", 0, 0.5), point("without", 0, 0.5), point("with", 1, 0.75)]


def test_a_curve_goes_over_the_answers_until_then(page: list[tuple[str, Any]]) -> None:
    points = [point("with", 0, 0.25, QuestionPart.LEARN), *LEARNED, point("without", 1, None)]
    assert shown(page, points, []) == ["With and without skills"]
    rows = spec_of(page)["data"]["values"]
    assert [(row["arm"], row["answers"], row["right so far"]) for row in rows] == [
        ("with", 4, 0.5),
        ("without", 4, 0.5),
        ("with", 8, 0.75),
    ]
    (words,) = [what for kind, what in page if kind == "caption"]
    assert "75" in words


def test_types_are_shown_where_there_are_several_with_figures(page: list[tuple[str, Any]]) -> None:
    scores = [score(ALL, 0.5), score("who", 0.25), score("when", None), score("who", 1, "without")]
    assert shown(page, [], scores) == ["Right answers by type"]
    rows = spec_of(page)["data"]["values"]
    assert [(row["type"], row["right"]) for row in rows] == [("all questions", 0.5), ("who", 0.25)]


def test_names_of_types_and_lists_are_cut_to_be_read(page: list[tuple[str, Any]]) -> None:
    shown(page, [], [score("x" * 90 + str(n), 0.5) for n in range(15)])
    assert all(
        len(row["type"]) <= evaluation_report.MAX_NAME_CHARS
        for row in spec_of(page)["data"]["values"]
    )
    (words,) = [what for kind, what in page if kind == "caption"]
    assert "and 3 more in the table" in words
