"""Finds texts that repeat words of deleted clips; pure.

A model that wrote later memories was shown earlier ones, and may have repeated them. Such texts
are found by words that occur in the deleted clips only.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from domain.asking import REF_KINDS
from memory.writers.labels import content_words

_REF = re.compile(rf"(?<!\w)(?:[{REF_KINDS}][1-9]\d*|[0-9a-f]{{64}})(?!\w)")


def exclusive_words(deleted: Iterable[str], remaining: Iterable[str]) -> frozenset[str]:
    """Return content words of ``deleted`` that do not occur in ``remaining``, in lower case."""
    words = {word for text in deleted for word in content_words(text)}
    for text in remaining:
        if words:
            words.difference_update(content_words(text))
    return frozenset(words)


def flatten_text(value: Any) -> str:
    """Return all texts of a JSON value, one per line."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return "\n".join(flatten_text(item) for item in value.values())
    if isinstance(value, Sequence):
        return "\n".join(flatten_text(item) for item in value)
    return ""


def contains_any(text: str, words: Collection[str]) -> bool:
    """Tell whether a text contains one of these words."""
    return bool(words) and not set(words).isdisjoint(content_words(text))


def quotes_any(text: str, words: Collection[str], refs: Collection[str]) -> bool:
    """Tell whether a text has one of these words or cites one of ``refs`` (``m12``, a SHA-256)."""
    return not set(refs).isdisjoint(_REF.findall(text)) or contains_any(text, words)
