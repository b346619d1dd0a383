"""Who is who in a view: names for tags in what is shown, tags for names in what is asked."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from domain.memories import with_attribution
from domain.people import TAG, Character
from people.clip_people import replace_names
from retrieval.terms import STOP, plain_words, terms
from store.queries.search import StoredLine

_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class ViewPerson:
    """A character of one video, with every tag that stands for them."""

    video: str
    character: Character

    @cached_property
    def tags(self) -> tuple[str, ...]:
        """Every tag of the character."""
        return self.character.tags

    @cached_property
    def name_words(self) -> frozenset[str]:
        """The words of the known name, in lower case."""
        return frozenset(plain_words(self.character.name or ""))


def nobody_else(_: str) -> tuple[ViewPerson, ...]:
    """Return the people of a video where all of a view are known."""
    return ()


@dataclass(frozen=True)
class ViewPeople:
    """The people of a view: of all its videos, or of those where somebody has a name that is asked.

    ``of_video`` reads the people of another video, when one of its lines is shown.
    """

    people: tuple[ViewPerson, ...] = ()
    of_video: Callable[[str], tuple[ViewPerson, ...]] = nobody_else

    def names(self, video: str) -> dict[str, str]:
        """Return how each tag of a video is shown, and each name that a person replaced."""
        if video not in self._names:
            self._names[video] = _names_of(self.of_video(video))
        return self._names[video]

    @cached_property
    def _names(self) -> dict[str, dict[str, str]]:
        videos = dict.fromkeys(one.video for one in self.people)
        return {
            video: _names_of([one for one in self.people if one.video == video]) for video in videos
        }

    def named_in(self, text: str) -> tuple[ViewPerson, ...]:
        """Whom a text is about: by tag, by name, or by a part of a name that only one has."""
        words = frozenset(plain_words(text))
        might = range(len(self.people)) if "<" in text else self._with_words(words)
        return tuple(self.people[n] for n in might if self._is_meant(self.people[n], text, words))

    def _with_words(self, words: Iterable[str]) -> list[int]:
        """Who has any of these words in the name, in order."""
        return sorted(set().union(*(self._bearers.get(word, ()) for word in words)))

    @cached_property
    def _bearers(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for number, one in enumerate(self.people):
            for word in one.name_words:
                found.setdefault(word, []).append(number)
        return found

    def terms_of(self, text: str) -> list[str]:
        """Return the search terms of ``text``, with the tags of whom it names, and former names."""
        written = self.as_written(text)
        tags = " ".join(self.tags_in(text))
        return list(dict.fromkeys([*terms(text), *terms(written), *terms(tags)]))

    def tags_in(self, text: str) -> list[str]:
        """Return the tags of whom ``text`` names, in order."""
        return sorted({tag for person in self.named_in(text) for tag in person.tags})

    def as_written(self, text: str) -> str:
        """``text`` with the names that lines were written under, before a person gave others."""
        return replace_names(self._former, text)

    @cached_property
    def _former(self) -> dict[str, str]:
        known = {one.character.name: one.character.aliases for one in self.people}
        return {name: aliases[0] for name, aliases in known.items() if name and aliases}

    def _is_meant(self, person: ViewPerson, text: str, words: frozenset[str]) -> bool:
        if any(tag in text for tag in person.tags):
            return True
        name = person.name_words
        if len(name) > 1 and name <= words:
            return True
        own = [part for part in name & words if len(self._names_with[part]) == 1]
        parts = _WORD.findall(person.character.name or "") if own else []
        return any(_says(text, part) for part in parts if part.casefold() in own)

    @cached_property
    def _names_with(self) -> dict[str, set[frozenset[str]]]:
        """The names that each word is a part of."""
        names: dict[str, set[frozenset[str]]] = {}
        for one in self.people:
            for word in one.name_words:
                names.setdefault(word, set()).add(one.name_words)
        return names


def _names_of(people: Iterable[ViewPerson]) -> dict[str, str]:
    """How the tags of one video's people are shown, and what stands for former names."""
    everybody, names = list(people), dict[str, str]()
    for one in everybody:
        names.update(dict.fromkeys(one.character.aliases, one.character.label))
    for one in everybody:
        shown = ((tag, one.character.shown(tag)) for tag in one.tags)
        names.update((tag, name) for tag, name in shown if name != tag)
    return names


NOBODY = ViewPeople()
"""The people of a view in which nobody is known."""


def _says(text: str, name: str) -> bool:
    """Whether a text has this word as a name: a name is written large, "will" and "Will" differ.

    In a text that is all small, any word may be a name, but for those that say nothing.
    """
    words = _WORD.findall(text)
    if name in words:
        return name != name.casefold() or len(name) > 2
    return text == text.lower() and name.casefold() in words and name.casefold() not in STOP


def view_people(people: Mapping[str, Iterable[Character]]) -> ViewPeople:
    """The people of several videos, video after video."""
    return ViewPeople(
        tuple(ViewPerson(video, one) for video, them in people.items() for one in them)
    )


def line_text(line: StoredLine, names: Mapping[str, str]) -> str:
    """A line as it is shown: with names for tags, who said it, and that it was read."""
    text = with_names(line.text, names)
    if line.source == "read" and line.kind == "episodic":
        return f"On screen: {text}"
    speaker = names.get(line.speaker, line.speaker) if line.speaker else None
    return with_attribution(text, line.source, speaker)


def readable(line: StoredLine, names: Mapping[str, str]) -> str:
    """A line for a model that reads: with names, but without tags, which are no words."""
    text = TAG.sub("somebody", with_names(line.text, names))
    speaker = names.get(line.speaker or "", line.speaker or "")
    named = speaker and not TAG.fullmatch(speaker)
    return f"{speaker}: {text}" if named else text


def renamed(text: str, names: Mapping[str, str]) -> str:
    """Return a text that Homer wrote, with tags and replaced names as they are now."""
    former = {name: known for name, known in names.items() if not TAG.fullmatch(name)}
    return with_names(replace_names(former, text), names)


def with_names(text: str, names: Mapping[str, str]) -> str:
    """``text`` with every tag as it is shown: by name, or by the number of who has several."""
    return TAG.sub(lambda tag: names.get(tag[0], tag[0]), text) if "<" in text else text
