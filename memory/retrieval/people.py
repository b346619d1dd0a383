"""Who is who in a view: names for tags in what is shown, tags for names in what is asked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from domain.people import Character
from memory.retrieval.words import plain_words
from store.queries.search import Line

_TAG = re.compile(r"<(?:face|voice|character)_\d+>")


@dataclass(frozen=True)
class Person:
    """A character of one video, with every tag that stands for them."""

    video: str
    character: Character

    @property
    def tags(self) -> tuple[str, ...]:
        """The character's tag and those of its identities."""
        one = self.character
        return (
            one.tag,
            *(f"<face_{number}>" for number in one.faces),
            *(f"<voice_{number}>" for number in one.voices),
        )

    def is_named(self, query: str, words: frozenset[str]) -> bool:
        """Whether a query names or tags this person."""
        name = frozenset(plain_words(self.character.name or ""))
        return (bool(name) and name <= words) or any(tag in query for tag in self.tags)


@dataclass(frozen=True)
class Cast:
    """The people of a view."""

    people: tuple[Person, ...] = ()

    def names(self, video: str) -> dict[str, str]:
        """The known name of each tag of a video."""
        return {
            tag: one.character.name
            for one in self.people
            if one.video == video and one.character.name
            for tag in one.tags
        }

    def named_in(self, query: str) -> tuple[Person, ...]:
        """Whom a query is about."""
        words = frozenset(plain_words(query))
        return tuple(one for one in self.people if one.is_named(query, words))


def cast(people: Mapping[str, Iterable[Character]]) -> Cast:
    """The people of several videos, video after video."""
    return Cast(tuple(Person(video, one) for video, them in people.items() for one in them))


def told(line: Line, names: Mapping[str, str]) -> str:
    """A line as it is shown: with names for tags, who said it, and that it was read."""
    text = with_names(line.text, names)
    if line.source == "said" and line.speaker:
        return f"{names.get(line.speaker, line.speaker)}: {text}"
    read = line.source == "read" and line.kind == "episodic"
    return f"On screen: {text}" if read else text


def with_names(text: str, names: Mapping[str, str]) -> str:
    """``text`` with every tag replaced by the name known for it, if any."""
    return _TAG.sub(lambda tag: names.get(tag[0], tag[0]), text) if "<" in text else text
