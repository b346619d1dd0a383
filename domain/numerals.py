"""Numbers in English texts, as words or digits."""

from __future__ import annotations

import re

_UPWARD = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty"
)
_WORD = {word: number for number, word in enumerate(_UPWARD.split())} | {"none": 0}
_NOT_COUNTS = re.compile(r"<[^>]*>|\[?\d+(?::\d\d)+(?:\.\d+)?(?:-\d+(?::\d\d)+)?\]?")
_NUMBER = re.compile(rf"\b(?:\d+|{'|'.join(_WORD)})\b", re.I)


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
