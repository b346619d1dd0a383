"""Texts from outside, made fit to be kept."""

from __future__ import annotations

import re
import unicodedata
from typing import Annotated

from pydantic import BeforeValidator

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_JOINERS = "\u200c\u200d"
"""Invisible, but they belong to words of some scripts."""


def storable(text: str) -> str:
    """``text`` without what no database and no file can hold: NUL and halves of characters."""
    return _UNSTORABLE.sub("�", text)


def visible(text: str) -> str:
    """``text`` without what cannot be seen, which only a machine would read; spaces stay spaces."""
    return text if text.isprintable() else "".join(map(_seen, text))


def _seen(char: str) -> str:
    if char in _JOINERS or unicodedata.category(char) not in ("Cc", "Cf"):
        return char
    return " " if char.isspace() else ""


def _kept(value: object) -> object:
    return storable(value) if isinstance(value, str) else value


StorableText = Annotated[str, BeforeValidator(_kept)]
"""A text that may come from anywhere: a file's name, a command line, a page."""


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
    """The first number of a text, None without one; times and tags of people are none."""
    found = _NUMBER.search(_NOT_COUNTS.sub(" ", text))
    if found is None:
        return None
    said = found[0].lower()
    return int(said) if said.isdecimal() else _WORD[said]


def has_number(text: str) -> bool:
    """Whether a text says any number, times and tags of people left out."""
    return first_number(text) is not None
