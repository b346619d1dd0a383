"""What pages give the browser to draw, and words, times and sizes as they show them."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest
import streamlit
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from domain.time import TimeSpan, parse_clock
from domain.words import WORD_JOINER, format_span, format_time, join_words, short_times
from evals.report_formats import ReportTable
from ui import charts, player
from ui.formatting import escape_markdown, format_bytes, format_duration
from ui.player import Lane, TimelineBar, pack_rows

SPANS = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), max_size=25)
ROWS = [{"day": "2026-01-01", "asked": 2}, {"day": "2026-01-02", "asked": 0}]


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
    arcs = [TimelineBar("", 0, 5, "then", tone="temporal")]
    return player.show_timeline("people", 0, lanes, "key", arcs=arcs, arcs_name="events"), given


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
    found = {name: data["arcs"][0][name] for name in ("start", "end", "label", "tone")}
    assert found == {"start": 0, "end": 5, "label": "then", "tone": "temporal"}


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """What was put on the page: the kind of thing, and what it was made of."""
    put: list[tuple[str, Any]] = []
    for name in ("header", "caption", "html", "vega_lite_chart"):

        def show(*given: Any, name: str = name, **options: Any) -> None:
            put.append((name, given[0] if given else options))

        monkeypatch.setattr(streamlit, name, show)
    return put


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
    assert (axis["scale"]["domain"], axis["axis"]["format"]) == ([0, 1], "%")


def test_words_of_a_table_are_data_and_heads_stay_apart(page: list[tuple[str, Any]]) -> None:
    charts.report_table(ReportTable("Runs [1](x)", ("run", "", ""), (("<i>a</i>", "b", "c"),)))
    assert page[0] == ("header", rf"Runs \[1\]{WORD_JOINER}\(x\)")
    kind, table = page[1]
    assert kind == "html"
    assert '<th scope="col">run</th><td></td><td></td>' in table
    assert "<td>&lt;i&gt;a&lt;/i&gt;</td><td>b</td><td>c</td>" in table


MARKDOWN = MarkdownIt("commonmark", {"html": True})
TURNED = (
    r"(?ai)(https?://|www(?=\.))([-.\w]+)([^ \t\r\n]*)",
    r"(?a)(?<![^\s!-/:-@\[-`{-~])([-.\w+]+)@([-\w]+(?:\.[-\w]+)+)",
    r":\+1:|:-1:|(?a::[\w-]*[a-z1][\w-]*:)|:streamlit:|:material/",
    r"(^|\s)(<->|->|<-|--|>=|<=|~=)(\s|$)",
)
ODD = (
    *"hHtTpPwW:/.@<>=~-+ _a1é()[]!*\u200d\u2060",
    "http",
    "https://",
    "www.",
    "a.b",
    "->",
    "--",
    ":material/",
    ":home:",
    ":+1:",
    "0:02:05",
)


def text_of(markdown: str) -> str:
    """What a reader sees, by a Markdown parser; every other kind of token is a failure."""
    blocks = [t for t in MARKDOWN.parse(markdown) if t.type == "inline"]
    if not blocks:
        return ""
    (inline,) = blocks
    # What Streamlit's page makes a link or another sign of, by its own expressions.
    words = "".join(child.content for child in inline.children or [])
    assert [found[0] for way in TURNED for found in re.finditer(way, words)] == []
    kinds = {child.type for child in inline.children or []}
    assert kinds <= {"text", "text_special"}, kinds
    return "".join(child.content for child in inline.children or []).replace(WORD_JOINER, "")


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "[a link](javascript:alert(1))",
        "![pixel](http://example.org/p.png)",
        "# not a heading",
        "- not a list",
        "1. not a list",
        "**bold** _it_ `code` ~~gone~~",
        "costs $5 and $6",
        ":material/home: :red[loud]",
        "a & b &lt; c",
        "https://example.org",
        "HTTP://user:word@evil.example:80/p?q=1#x",
        "see www.evil.example, or Www.evil.example/path",
        "(www.evil.example)",
        "xhttps://www.evil.example",
        "mail me@evil.example or mailto:me@evil.example",
        "a.b+c@d-e.evil.example",
        "a -> b <- c <-> d -- e >= f <= g ~= h",
        ":smile: :+1: :-1: :100: :streamlit: :material/home: x:material/ at 0:02:05:",
        "می\u200cخواهم 👩\u200d👧",
    ],
)
def test_no_markup_takes_effect(text: str) -> None:
    assert text_of(escape_markdown(text)) == text


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_every_text_is_shown_as_one_line_of_its_words(text: str) -> None:
    shown = text_of(escape_markdown(text))
    assert "\n" not in escape_markdown(text)
    words = "".join(c if c.isprintable() or c in "\u200c\u200d" else " " for c in text)
    assert re.sub(r"\s+", "", shown) == re.sub(r"\s+", "", words)


@given(st.lists(st.sampled_from(ODD), max_size=30).map("".join))
def test_nothing_like_an_address_becomes_a_link(text: str) -> None:
    words = text.replace(WORD_JOINER, " ").strip()
    assert " ".join(text_of(escape_markdown(text)).split()) == " ".join(words.split())


def test_only_what_would_be_a_link_gets_a_sign_that_is_not_seen() -> None:
    for words in (
        *("an e@ and @ 5", "www is old", "http is a word", "a-b --c", "5:30 // 6"),
        "0:02:00-0:02:30 x",
    ):
        assert WORD_JOINER not in escape_markdown(words)


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


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("It begins with: [00:02-00:08] Hello", "It begins with: [0:02-0:08] Hello"),
        ("First at 00:35: a gate", "First at 0:35: a gate"),
        ("Ann (seen 09:59-10:01)", "Ann (seen 9:59-10:01)"),
        ("from 01:00:05-01:00:07", "from 01:00:05-01:00:07"),
        ("the clock shows 09:30", "the clock shows 09:30"),
    ],
)
def test_times_of_an_answer_have_no_padding_and_quoted_ones_stay(text: str, shown: str) -> None:
    assert short_times(text) == shown


@pytest.mark.parametrize(
    ("parts", "joined"),
    [(["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c"), ([], "")],
)
def test_parts_of_a_sentence_are_joined(parts: list[str], joined: str) -> None:
    assert join_words(parts) == joined
