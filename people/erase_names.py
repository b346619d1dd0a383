"""Takes a person's names and tags out of texts; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

SOMEBODY = "somebody"
"""Replaces the names of a forgotten person."""

MIN_LETTERS = 3
"""Words of a name with fewer letters are not erased on their own."""

_WORD = re.compile(r"[^\W\d_]+")
TITLES = frozenset(
    {"doctor", "professor", "miss", "mrs", "sir", "dame", "lord", "lady", "judge", "captain"}
    | {"mr", "ms", "dr", "prof"}
)
"""Words before a name that are not part of it."""
_SHARED = TITLES | {"the", "and", "von", "van"}
"""Words of names that are not erased on their own."""


class NameEraser:
    """Replaces tags, whole names in any case, and single words of names where capitalised.

    Args:
        tags: The person's tags, such as ``<face_3>``.
        names: All names of the person.
        others: All names of other people; names and words that they share are not erased.
    """

    def __init__(self, tags: Iterable[str], names: Iterable[str], others: Iterable[str]) -> None:
        other_names = {name.casefold() for name in others}
        words = {word for name in other_names for word in _WORD.findall(name)}
        self.tags = sorted(tag.strip("<>") for tag in tags)
        self.names = sorted(
            {n for n in names if n.casefold() not in other_names}, key=len, reverse=True
        )
        self.parts = sorted(
            {
                word
                for name in self.names
                for word in _WORD.findall(name)
                if len(word) >= MIN_LETTERS and word.casefold() not in words | _SHARED
            }
        )

    @property
    def search_terms(self) -> list[str]:
        """Terms to search for, case-insensitively: other texts need no erasing."""
        return [*self.tags, *self.names, *self.parts]

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        tags = "|".join(rf"[<‹]?\b{tag}\b[>›]?" for tag in self.tags)
        names = "|".join(rf"(?<!\w){re.escape(name)}(?!\w)" for name in self.names)
        forms = sorted({f for part in self.parts for f in (part, part.upper(), part.title())})
        parts = "|".join(rf"(?<!\w){form}(?!\w)" for form in forms if form != form.lower())
        patterns = [tags, f"(?i:{names})" if names else "", parts]
        return re.compile("|".join(pattern for pattern in patterns if pattern) or r"(?!)")

    def erase(self, text: str) -> str:
        """Replace the person's tags and names by a neutral word."""
        return self._pattern.sub(SOMEBODY, text)

    def erase_json(self, value: Any) -> Any:
        """Return a JSON value with `erase` applied to every text in it."""
        if isinstance(value, str):
            return self.erase(value)
        if isinstance(value, Mapping):
            return {key: self.erase_json(item) for key, item in value.items()}
        if isinstance(value, Sequence):
            return [self.erase_json(item) for item in value]
        return value
