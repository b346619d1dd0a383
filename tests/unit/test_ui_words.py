"""Words from outside are shown as they are, never as Markdown or HTML."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from ui.desk import video_url
from ui.words import plain

MARKDOWN = MarkdownIt("commonmark", {"html": True})


def text_of(markdown: str) -> str:
    """What a reader sees, by a Markdown parser; every other kind of token is a failure."""
    blocks = [t for t in MARKDOWN.parse(markdown) if t.type == "inline"]
    if not blocks:
        return ""
    (inline,) = blocks
    kinds = {child.type for child in inline.children or []}
    assert kinds <= {"text", "text_special"}, kinds
    return "".join(child.content for child in inline.children or [])


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
    ],
)
def test_no_markup_takes_effect(text: str) -> None:
    assert text_of(plain(text)) == text


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_every_text_is_shown_as_one_line_of_its_words(text: str) -> None:
    shown = text_of(plain(text))
    assert "\n" not in plain(text)
    words = "".join(c if c.isprintable() else " " for c in text)
    assert re.sub(r"\s+", "", shown) == re.sub(r"\s+", "", words)


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("http://127.0.0.1:8501/library?x=1#y", "http://127.0.0.1:8501/video/abc"),
        ("https://homer.example", "https://homer.example/video/abc"),
        ("http://[::1]:80/", "http://[::1]:80/video/abc"),
        (None, None),
        ("", None),
        ("about:blank", None),
    ],
)
def test_a_video_is_found_where_the_browser_sees_the_app(
    monkeypatch: pytest.MonkeyPatch, address: str | None, url: str | None
) -> None:
    context = SimpleNamespace(context=SimpleNamespace(url=address))
    monkeypatch.setattr("ui.desk.st", context)
    assert video_url("abc") == url


def test_streamlits_own_marks_are_escaped() -> None:
    for mark in (":red[x]", "$x$", ":smile:"):
        assert plain(mark)[0] == "\\"
