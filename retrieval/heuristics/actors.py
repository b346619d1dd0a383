"""Who does what in which line: for questions whose options are people."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from store.queries.search import StoredLine

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

NARRATES = 0.1
"""At least this share of the descriptions is in the first person where somebody narrates."""

_SAID = "said"
_TAG = r"<(?:face|voice|character)_\d+>"
_NAME = re.compile(rf"{_TAG}|\b[A-Z][a-z]+")
_WORD_NAME = re.compile(r"[A-Z][a-z]+")
_FIRST_PERSON = re.compile(r"\b(?:I|[Mm]e|[Mm]y|[Ww]e|[Uu]s|[Oo]ur)\b")
_SELF = frozenset({"me", "mine", "i", "my", "myself"})
_JOINS = frozenset({"and", "with", "we", "together", "the"})
_NOT_PEOPLE = frozenset(
    {"Other", "Others", "Unknown", "Music", "Someone", "Everyone", "Voice", "Unidentified"}
    | {"Male", "Female", "Speaker"}
)


@dataclass(frozen=True, eq=False)
class ActorLines:
    """Which of M lines are whose, ascending.

    ``said`` are lines by speaker, ``named`` descriptions by the names and tags in them; ``told``
    (M,) marks descriptions, ``first_person`` (M,) those told as one's own doing.
    """

    said: Mapping[str, Ints]
    named: Mapping[str, Ints]
    told: Flags
    first_person: Flags

    def of(self, names: Sequence[str], *, narrator: bool, speakers: Iterable[str]) -> Flags:
        """Return the lines of one person, known by these names and tags, shape (M,).

        What they say, and descriptions that name them; of the narrator also those in the first
        person and those that name none of the ``speakers``.
        """
        own = np.zeros(len(self.told), dtype=np.bool_)
        for name in names:
            own[self.said.get(name, _NONE)] = True
            own[self.named.get(name, _NONE)] = True
        if not narrator:
            return own
        unnamed = self.told.copy()
        for name in speakers:
            unnamed[self.named.get(name, _NONE)] = False
        return own | unnamed | self.first_person


def plain_names(speakers: Iterable[str]) -> dict[str, str]:
    """Return those who speak under a plain name, by the name in lower case."""
    names = (name for name in speakers if _WORD_NAME.fullmatch(name))
    return {name.lower(): name for name in names if name not in _NOT_PEOPLE}


_NONE: Ints = np.zeros(0, dtype=np.int64)


def actor_lines(lines: Sequence[StoredLine]) -> ActorLines:
    """Sort out whose lines are whose."""
    said: dict[str, list[int]] = {}
    named: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        if line.speaker:
            said.setdefault(line.speaker, []).append(number)
        if line.source != _SAID:
            for name in sorted(set(_NAME.findall(line.text))):
                named.setdefault(name, []).append(number)
    told = np.array([line.source != _SAID for line in lines], dtype=np.bool_)
    own = [bool(told[i] and _FIRST_PERSON.search(line.text)) for i, line in enumerate(lines)]
    return ActorLines(_arrays(said), _arrays(named), told, np.array(own, dtype=np.bool_))


def people_of(option: str, known: Mapping[str, str], narrator: str | None) -> tuple[str, ...]:
    """Whom an option names, or () where it is not about people only."""
    words = re.findall(r"[^\W\d_]+", option.lower().replace("'s", "").replace("’s", ""))
    words = [word for word in words if word not in _JOINS]
    named = [narrator if word in _SELF else known.get(word) for word in words]
    people = [name for name in named if name]
    return tuple(dict.fromkeys(people)) if 2 * len(people) >= len(words) else ()


def are_people(options: Iterable[tuple[str, ...]]) -> bool:
    """Whether nearly all options (3 in 4) are people."""
    told = [bool(option) for option in options]
    return len(told) > 1 and sum(told) >= 0.75 * len(told)


def _arrays(lists: Mapping[str, Sequence[int]]) -> dict[str, Ints]:
    return {name: np.array(numbers, dtype=np.int64) for name, numbers in lists.items()}
