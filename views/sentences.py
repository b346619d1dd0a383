"""Sentences of lower layers in the reader's language: they come in English, with values in them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from string import Formatter

from views.translation import ENGLISH, LOCALE, language, translate

SENTENCES = LOCALE / "sentences.txt"
"""The marked sentences with values, one a line; ``make catalogues`` writes it."""
DEEPEST = 50
"""A sentence that is a value of a sentence, and so on, is translated to this depth: texts from
outside are among the values."""
MOST_LISTED = 50
"""Sentences of a list that are translated one by one at a time, for the same reason."""


def translate_sentence(text: str) -> str:
    """Return a sentence, or one with values in it, in the language of the page.

    ``person 2`` matches ``person {0}`` and becomes ``Person 2``. Values that are sentences of the
    catalogue themselves are translated as well, or lists of some with ``; `` between them. All
    others stay: a title may be one or two words of the catalogue.
    """
    if language.get() == ENGLISH:
        return text
    whole = translate(text)
    return _translate_filled(text) if whole == text else whole


def _translate_filled(text: str, depth: int = 0) -> str:
    if depth > DEEPEST:
        return text
    whole = translate(text) if text.count(" ") >= 2 else text
    if whole != text:
        return whole
    for sentence, literals in _sentences():
        values = values_between(literals, text)
        if values is not None:
            translated = [_translate_filled(value, depth + 1) for value in values]
            return translate(sentence).format(*translated)
    listed = text.split("; ", MOST_LISTED)
    if len(listed) == 1:
        return text
    return "; ".join(_translate_filled(one, depth + 1) for one in listed)


def values_between(literals: Sequence[str], text: str) -> list[str] | None:
    """Return the values that a text has between literals; None if it does not have them.

    Args:
        literals: at least two, none empty but the first and the last.
        text: of any length; the time grows with it, not with its square.
    """
    first, *inner, last = literals
    if len(text) < len(first) + len(last) or not text.startswith(first) or not text.endswith(last):
        return None
    rest, values = text[len(first) : len(text) - len(last)], list[str]()
    for literal in inner:
        value, found, rest = rest.partition(literal)
        if not found:
            return None
        values.append(value)
    return [*values, rest]


@cache
def _sentences() -> list[tuple[str, tuple[str, ...]]]:
    """Return sentences and what they have between their values, those with the most of it first."""
    read = [(line, literals_of(line)) for line in SENTENCES.read_text("utf-8").splitlines()]
    return sorted(read, key=lambda one: -sum(map(len, one[1])))


def literals_of(sentence: str) -> tuple[str, ...]:
    """Return what a sentence has before, between and after its values."""
    parts = list(Formatter().parse(sentence))
    ends = () if parts[-1][1] is None else ("",)
    return (*(literal for literal, *_ in parts), *ends)
