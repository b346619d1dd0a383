"""Actors of lines, for questions whose options are people (English)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from store.queries.search import StoredLine

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

FIRST_PERSON_SHARE = 0.1
"""Minimum share of first-person descriptions in a video with a narrator."""

_SAID = "said"
_TAG = r"<(?:face|voice|character)_\d+>"
_NAME = re.compile(rf"{_TAG}|\b[A-Z][a-z]+")
_WORD_NAME = re.compile(r"[A-Z][a-z]+")
_FIRST_PERSON = re.compile(r"\b(?:I|[Mm]e|[Mm]y|[Ww]e|[Uu]s|[Oo]ur)\b")
_SELF = frozenset({"me", "mine", "i", "my", "myself"})
_JOINS = frozenset({"and", "with", "we", "together", "the"})
NOT_PEOPLE = frozenset(
    {"Other", "Others", "Unknown", "Music", "Someone", "Everyone", "Voice", "Unidentified"}
    | {"Male", "Female", "Speaker"}
)


@dataclass(frozen=True, eq=False)
class ActorLines:
    """M lines by actor; line numbers are ascending.

    ``by_speaker`` are lines by speaker, ``by_name`` descriptions by the names and tags in them;
    ``descriptions`` (M,) marks lines that are not speech, ``first_person`` (M,) those of them in
    the first person.
    """

    by_speaker: Mapping[str, Ints]
    by_name: Mapping[str, Ints]
    descriptions: Flags
    first_person: Flags

    def mask(self, names: Sequence[str], *, narrator: bool, speakers: Iterable[str]) -> Flags:
        """Mark the lines of one person with these names and tags, shape (M,).

        These are the lines they speak and descriptions that name them; for the narrator also
        descriptions in the first person, and those that name none of the ``speakers``.
        """
        mask = np.zeros(len(self.descriptions), dtype=np.bool_)
        for name in names:
            mask[self.by_speaker.get(name, _NONE)] = True
            mask[self.by_name.get(name, _NONE)] = True
        if not narrator:
            return mask
        unnamed = self.descriptions.copy()
        for name in speakers:
            unnamed[self.by_name.get(name, _NONE)] = False
        return mask | unnamed | self.first_person


def plain_names(speakers: Iterable[str]) -> dict[str, str]:
    """Return the speakers with a plain name (one capitalised word), by the name in lower case."""
    names = (name for name in speakers if _WORD_NAME.fullmatch(name))
    return {name.lower(): name for name in names if name not in NOT_PEOPLE}


_NONE: Ints = np.zeros(0, dtype=np.int64)


def actor_lines(lines: Sequence[StoredLine]) -> ActorLines:
    """Index lines by speaker and by the names in them."""
    by_speaker: dict[str, list[int]] = {}
    by_name: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        if line.speaker:
            by_speaker.setdefault(line.speaker, []).append(number)
        if line.source != _SAID:
            for name in sorted(set(_NAME.findall(line.text))):
                by_name.setdefault(name, []).append(number)
    descriptions = np.array([line.source != _SAID for line in lines], dtype=np.bool_)
    first_person = [
        bool(descriptions[i] and _FIRST_PERSON.search(line.text)) for i, line in enumerate(lines)
    ]
    return ActorLines(
        _arrays(by_speaker), _arrays(by_name), descriptions, np.array(first_person, dtype=np.bool_)
    )


def people_in_option(
    option: str, known: Mapping[str, str], narrator: str | None
) -> tuple[str, ...]:
    """Return the people that an option names; () if over half of its words are not names."""
    words = re.findall(r"[^\W\d_]+", option.lower().replace("'s", "").replace("’s", ""))
    words = [word for word in words if word not in _JOINS]
    named = [narrator if word in _SELF else known.get(word) for word in words]
    people = [name for name in named if name]
    return tuple(dict.fromkeys(people)) if 2 * len(people) >= len(words) else ()


def are_people(options: Iterable[tuple[str, ...]]) -> bool:
    """Check whether at least 3 in 4 options, of two or more, are people."""
    has_people = [bool(option) for option in options]
    return len(has_people) > 1 and sum(has_people) >= 0.75 * len(has_people)


def _arrays(lists: Mapping[str, Sequence[int]]) -> dict[str, Ints]:
    return {name: np.array(numbers, dtype=np.int64) for name, numbers in lists.items()}
