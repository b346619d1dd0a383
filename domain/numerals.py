"""Numbers in English texts, as words or digits."""

from __future__ import annotations

import re

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
