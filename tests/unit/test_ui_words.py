"""Words from outside are shown as they are, never as Markdown or HTML."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from domain.texts import WORD_JOINER
from ui.formatting import escape_markdown

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
    assert turned(inline) == []
    kinds = {child.type for child in inline.children or []}
    assert kinds <= {"text", "text_special"}, kinds
    return "".join(child.content for child in inline.children or []).replace(WORD_JOINER, "")


def turned(inline: Token) -> list[str]:
    """What Streamlit's page makes a link or another sign of, by its own expressions."""
    words = "".join(child.content for child in inline.children or [])
    return [found[0] for way in TURNED for found in re.finditer(way, words)]


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
        "an e@ and @ 5",
        "www is old",
        "http is a word",
        "a-b --c",
        "5:30 // 6",
        "0:02:00-0:02:30 x",
    ):
        assert WORD_JOINER not in escape_markdown(words)
