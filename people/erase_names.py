"""Takes a person's names and tags out of texts; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

SOMEBODY = "somebody"
"""What stands for whoever is forgotten."""

MIN_LETTERS = 3
"""A part of a name with fewer letters is no name."""

_WORD = re.compile(r"[^\W\d_]+")
_TITLES = frozenset(
    {"doctor", "professor", "miss", "mrs", "sir", "dame", "lord", "lady", "judge", "captain"}
    | {"the", "and", "von", "van"}
)


class NameEraser:
    """Replaces tags, whole names in any case, and the parts of names as names are written.

    Args:
        tags: ``<face_3>`` and the like.
        names: All that the person was called.
        others: All that others are called: what they share with the person stays theirs.
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
                part
                for name in self.names
                for part in _WORD.findall(name)
                if len(part) >= MIN_LETTERS and part.casefold() not in words | _TITLES
            }
        )

    @property
    def search_terms(self) -> list[str]:
        """A text in which none of these occurs, in whatever case, stays as it is."""
        return [*self.tags, *self.names, *self.parts]

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        tags = "|".join(rf"[<‹]?\b{tag}\b[>›]?" for tag in self.tags)
        names = "|".join(rf"(?<!\w){re.escape(name)}(?!\w)" for name in self.names)
        forms = sorted({f for part in self.parts for f in (part, part.upper(), part.title())})
        parts = "|".join(rf"(?<!\w){form}(?!\w)" for form in forms if form != form.lower())
        patterns = [tags, f"(?i:{names})" if names else "", parts]
        return re.compile("|".join(way for way in patterns if way) or r"(?!)")

    def erase(self, text: str) -> str:
        """Replace the person by a neutral word."""
        return self._pattern.sub(SOMEBODY, text)

    def erase_json(self, value: Any) -> Any:
        """Return a JSON value with every text in it erased."""
        if isinstance(value, str):
            return self.erase(value)
        if isinstance(value, Mapping):
            return {key: self.erase_json(one) for key, one in value.items()}
        if isinstance(value, Sequence):
            return [self.erase_json(one) for one in value]
        return value
