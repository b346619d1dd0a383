"""Language detection for questions, and whether the text model covers the language."""

from __future__ import annotations

import tomllib
import unicodedata
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from typing import Any

from retrieval.terms import plain_words, stem

ENGLISH = "en"
MIN_HITS = 2
"""Minimum number of function words of a language, which must exceed any other language's."""


@dataclass(frozen=True)
class Language:
    """A language, or several with one script: the name, and codes of ISO 639-1."""

    name: str
    codes: tuple[str, ...]


def detect_language(text: str) -> Language | None:
    """Detect the language of a text by script, else by function words; None if undecided."""
    return _by_letters(text) or _by_words(text)


def _by_letters(text: str) -> Language | None:
    """Detect the language by the script of most letters; None for Latin."""
    if text.isascii():
        return None
    letters = [
        unicodedata.name(letter, "").partition(" ")[0] for letter in text if letter.isalpha()
    ]
    counts = Counter(letters)
    if not counts:
        return None
    script, count = counts.most_common(1)[0]
    if "HIRAGANA" in counts and script == "CJK":
        script = "HIRAGANA"
    entry = _word_lists()["letters"].get(script) if 2 * count > len(letters) else None
    return None if entry is None else Language(entry["name"], tuple(entry["codes"]))


def _by_words(text: str) -> Language | None:
    codes = _codes_by_word()
    hits = Counter(code for word in plain_words(text) for code in codes.get(word, ()))
    (best, count), *others = [*hits.most_common(2), ("", 0)]
    if count < MIN_HITS or count == others[0][1]:
        return None
    return Language(_word_lists()["words"][best]["name"], (best,))


@lru_cache(1 << 12)
def is_english(text: str) -> bool:
    """Check whether the rules for English apply to a text: it is English, or that is undecided.

    In another language they are off, though some of its words look like theirs.
    """
    language = detect_language(text)
    return language is None or ENGLISH in language.codes


def function_words(text: str) -> frozenset[str]:
    """Return the function words of a text's language as search terms; none for English."""
    language = _by_words(text)
    code = language.codes[0] if language else ENGLISH
    return frozenset() if code == ENGLISH else frozenset(_stems(code))


@cache
def _stems(code: str) -> tuple[str, ...]:
    entry = _word_lists()["words"][code]
    return tuple(map(stem, f"{entry['words']} {entry.get('also', '')}".split()))


@cache
def _codes_by_word() -> dict[str, list[str]]:
    codes: dict[str, list[str]] = {}
    for code, entry in _word_lists()["words"].items():
        for word in set(entry["words"].split()):
            codes.setdefault(word, []).append(code)
    return codes


@cache
def _word_lists() -> dict[str, dict[str, Any]]:
    data = resources.files("domain.word_lists").joinpath("tongues.toml").read_text("utf-8")
    return tomllib.loads(data)


def language_note(text: str, covered: Collection[str]) -> str:
    """Return a note for users if the text model does not cover the language of a question.

    Args:
        covered: Codes of the model's languages; empty: unknown, or all.

    Returns:
        One sentence; empty if the model covers the language, or it is undecided.
    """
    language = detect_language(text) if covered else None
    if language is None or set(language.codes) & set(covered):
        return ""
    return (
        f"This profile's text model was made for {', '.join(covered)}; in {language.name} only "
        "equal words are found reliably."
    )
