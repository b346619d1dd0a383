"""Words from outside are shown as they are, never as Markdown or HTML."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

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


def test_streamlits_own_marks_are_escaped() -> None:
    for mark in (":red[x]", "$x$", ":smile:"):
        assert plain(mark)[0] == "\\"
