"""In which language is asked, as far as it can be told, and whether the text model covers it."""

from __future__ import annotations

import tomllib
import unicodedata
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from retrieval.terms import plain_words, stem

ENGLISH = "en"
LEAST = 2
"""So many words must speak for a language, and more than for any other."""


@dataclass(frozen=True)
class Language:
    """A language, or several that share their letters: the name, and codes of ISO 639-1."""

    name: str
    codes: tuple[str, ...]


def tongue_of(text: str) -> Language | None:
    """The language of a text; None where its few words do not tell."""
    return _by_letters(text) or _by_words(text)


def _by_letters(text: str) -> Language | None:
    """By the script that most letters are of, where that is not Latin."""
    letters = [unicodedata.name(one, "").partition(" ")[0] for one in text if one.isalpha()]
    counts = Counter(letters)
    if not counts:
        return None
    script, count = counts.most_common(1)[0]
    if "HIRAGANA" in counts and script == "CJK":
        script = "HIRAGANA"
    found = _known()["letters"].get(script) if 2 * count > len(letters) else None
    return None if found is None else Language(found["name"], tuple(found["codes"]))


def _by_words(text: str) -> Language | None:
    words = Counter(plain_words(text))
    hits = {
        code: sum(words[word] for word in set(entry["words"].split()) & words.keys())
        for code, entry in _known()["words"].items()
    }
    best, *others = sorted(hits.items(), key=lambda hit: -hit[1])
    if best[1] < LEAST or any(count == best[1] for _, count in others):
        return None
    return Language(_known()["words"][best[0]]["name"], (best[0],))


def small_words(text: str) -> frozenset[str]:
    """Search terms that sentences of a text's language can hardly do without; none of English."""
    tongue = _by_words(text)
    code = tongue.codes[0] if tongue else ENGLISH
    return frozenset() if code == ENGLISH else frozenset(_stems(code))


@cache
def _stems(code: str) -> tuple[str, ...]:
    return tuple(map(stem, _known()["words"][code]["words"].split()))


@cache
def _known() -> dict[str, dict[str, Any]]:
    data = resources.files("domain.word_lists").joinpath("tongues.toml").read_text("utf-8")
    return tomllib.loads(data)


def uncovered(text: str, covered: Collection[str]) -> str:
    """What is to be said where the text model was not made for the language of a question.

    Args:
        text: the question.
        covered: codes of the model's languages; empty: it is not known, or all.

    Returns:
        One sentence; empty where the model covers it, or the language cannot be told.
    """
    tongue = tongue_of(text) if covered else None
    if tongue is None or set(tongue.codes) & set(covered):
        return ""
    return (
        f"This profile's text model was made for {', '.join(covered)}; in {tongue.name} only equal "
        "words are found reliably."
    )
