"""Texts from outside: cleaning for storage and display, and numbers in them."""

from __future__ import annotations

import re
import unicodedata

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
WORD_JOINER = "\u2060"
"""Invisible and without width; what contains it is no link and no picture."""
JOINERS = "\u200c\u200d"
"""Invisible, but part of words in some scripts, and of some emoji."""


def make_storable(text: str) -> str:
    """Replace characters that cannot be stored (NUL and lone surrogates) by U+FFFD."""
    return _UNSTORABLE.sub("�", text)


def strip_invisible(text: str) -> str:
    """Remove invisible characters, which only a machine would read; spaces stay spaces."""
    if text.isprintable():
        return text
    seen = (char in JOINERS or unicodedata.category(char) not in ("Cc", "Cf") for char in text)
    return "".join(
        char if is_seen else " " if char.isspace() else ""
        for char, is_seen in zip(text, seen, strict=True)
    )


def one_line(text: str) -> str:
    """Return a text on one line, without invisible characters, with single spaces."""
    return " ".join(strip_invisible(text).split())


_UPWARD = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty"
)
_TENS = "thirty forty fifty sixty seventy eighty ninety hundred"
_LARGE = {"none": 0, "dozen": 12, "thousand": 1_000, "million": 1_000_000, "billion": 10**9}
_WORD = (
    {word: number for number, word in enumerate(_UPWARD.split())}
    | {word: 10 * tens for tens, word in enumerate(_TENS.split(), start=3)}
    | _LARGE
)
_CLOCK = r"\d{1,9}(?::\d\d)+"
_NOT_COUNTS = re.compile(rf"<\w{{1,40}}>|\[?(?<!\d){_CLOCK}(?:\.\d+)?(?:-{_CLOCK})?\]?")
_NUMBER = re.compile(rf"\b(?:\d{{1,15}}|{'|'.join(_WORD)})\b", re.I)


def first_number(text: str) -> int | None:
    """Return the first number in a text, or None; times and tags of people do not count."""
    match = _NUMBER.search(_NOT_COUNTS.sub(" ", text))
    if match is None:
        return None
    word = match[0].lower()
    return int(word) if word.isdecimal() else _WORD[word]


def has_number(text: str) -> bool:
    """Check whether a text has a number other than times and tags of people."""
    return first_number(text) is not None
