"""People in queries and results: names for tags in results, tags for names in queries."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from sqlalchemy.orm import Session

from domain.memories import Scope, with_attribution
from domain.people import TAG, Character
from people.characters import replace_names
from people.names import TITLES
from retrieval.terms import STOP, content_words, plain_words, terms
from store.queries.characters import people_as_of
from store.queries.search import StoredLine

_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class ViewPerson:
    """A character of one video with all its tags."""

    video: str
    character: Character

    @cached_property
    def tags(self) -> tuple[str, ...]:
        return self.character.tags

    @cached_property
    def name_words(self) -> frozenset[str]:
        """The words of the known name, in lower case."""
        return frozenset(plain_words(self.character.name or ""))


@dataclass(frozen=True)
class ViewPeople:
    """The people of a view, or of those of its videos where a person has a name in the query.

    ``of_video`` fetches the people of another video when one of its lines is returned.
    """

    people: tuple[ViewPerson, ...] = ()
    of_video: Callable[[str], tuple[ViewPerson, ...]] = lambda _video: ()

    def names(self, video: str) -> dict[str, str]:
        """Return the displayed name of each tag and each former name of a video's people."""
        if video not in self._names:
            self._names[video] = _names_of(self.of_video(video))
        return self._names[video]

    @cached_property
    def _names(self) -> dict[str, dict[str, str]]:
        videos = dict.fromkeys(person.video for person in self.people)
        return {
            video: _names_of([person for person in self.people if person.video == video])
            for video in videos
        }

    def named_in(self, text: str) -> tuple[ViewPerson, ...]:
        """Return the people that a text refers to: by tag, name, or a unique part of a name."""
        words = frozenset(plain_words(text))
        candidates = (
            range(len(self.people))
            if "<" in text
            else sorted(set().union(*(self._people_by_word.get(word, ()) for word in words)))
        )
        return tuple(
            self.people[n] for n in candidates if self._is_referred_to(self.people[n], text, words)
        )

    def only_named_in(self, text: str) -> tuple[ViewPerson, ...]:
        """Return the people of a text that names them and nothing else: none for "Ann's car"."""
        people = self.named_in(text)
        names = TITLES.union(*(person.name_words for person in people))
        return people if names.issuperset(content_words(TAG.sub(" ", text))) else ()

    @cached_property
    def _people_by_word(self) -> dict[str, list[int]]:
        numbers: dict[str, list[int]] = {}
        for number, person in enumerate(self.people):
            for word in person.name_words:
                numbers.setdefault(word, []).append(number)
        return numbers

    def terms_of(self, text: str, *, english: bool = True) -> list[str]:
        """Return the search terms of ``text``, with tags and former names of the people in it.

        ``english``: whether English stop words are left out.
        """
        written = self.with_former_names(text)
        tags = " ".join(self.tags_in(text))
        found = (terms(part, english=english) for part in (text, written, tags))
        return list(dict.fromkeys(chain.from_iterable(found)))

    def tags_in(self, text: str) -> list[str]:
        """Return the tags of the people that ``text`` refers to, sorted."""
        return sorted({tag for person in self.named_in(text) for tag in person.tags})

    def with_former_names(self, text: str) -> str:
        """Replace names that a user gave by the former ones, which lines were written with."""
        return replace_names(self._former, text)

    @cached_property
    def _former(self) -> dict[str, str]:
        known = {person.character.name: person.character.aliases for person in self.people}
        return {name: aliases[0] for name, aliases in known.items() if name and aliases}

    def _is_referred_to(self, person: ViewPerson, text: str, words: frozenset[str]) -> bool:
        if any(tag in text for tag in person.tags):
            return True
        name = person.name_words
        if len(name) > 1 and name <= words:
            return True
        unique_parts = [part for part in name & words if len(self._names_with[part]) == 1]
        parts = _WORD.findall(person.character.name or "") if unique_parts else []
        return any(_contains_name(text, part) for part in parts if part.casefold() in unique_parts)

    @cached_property
    def _names_with(self) -> dict[str, set[frozenset[str]]]:
        """The names that contain each word."""
        names: dict[str, set[frozenset[str]]] = {}
        for person in self.people:
            for word in person.name_words:
                names.setdefault(word, set()).add(person.name_words)
        return names


def _names_of(people: Iterable[ViewPerson]) -> dict[str, str]:
    """Return the displayed name of each tag and each former name of one video's people."""
    everybody, names = list(people), dict[str, str]()
    for person in everybody:
        names.update(dict.fromkeys(person.character.aliases, person.character.label))
    for person in everybody:
        shown = ((tag, person.character.shown(tag)) for tag in person.tags)
        names.update((tag, name) for tag, name in shown if name != tag)
    return names


NOBODY = ViewPeople()
"""The people of a view in which nobody is known."""


def _contains_name(text: str, name: str) -> bool:
    """Check whether a text has this word as a name: names are capitalised ("Will", not "will").

    In a text without capitals any word that is not a stop word may be a name.
    """
    words = _WORD.findall(text)
    if name in words:
        return name != name.casefold() or len(name) > 2
    return text == text.lower() and name.casefold() in words and name.casefold() not in STOP


def names_as_of(session: Session, scope: Scope) -> dict[str, str]:
    """Return the displayed name of each tag and each former name of a video's people."""
    return view_people({scope.video: people_as_of(session, scope)}).names(scope.video)


def view_people(people: Mapping[str, Iterable[Character]]) -> ViewPeople:
    """Build the people of several videos, video by video."""
    return ViewPeople(
        tuple(
            ViewPerson(video, person)
            for video, characters in people.items()
            for person in characters
        )
    )


def line_text(line: StoredLine, names: Mapping[str, str]) -> str:
    """Format a line for display: names for tags, the speaker, and "On screen" if it was read."""
    text = with_names(line.text, names)
    if line.source == "read" and line.kind == "episodic":
        return f"On screen: {text}"
    speaker = names.get(line.speaker, line.speaker) if line.speaker else None
    return with_attribution(text, line.source, speaker)


def text_for_reranker(line: StoredLine, names: Mapping[str, str]) -> str:
    """Format a line for a reranker: names for tags; unknown people as "somebody"."""
    text = TAG.sub("somebody", with_names(line.text, names))
    speaker = names.get(line.speaker or "", line.speaker or "")
    named = speaker and not TAG.fullmatch(speaker)
    return f"{speaker}: {text}" if named else text


def with_current_names(text: str, names: Mapping[str, str]) -> str:
    """Return a text that Homer wrote, with tags and replaced names as they are now."""
    former = {name: known for name, known in names.items() if not TAG.fullmatch(name)}
    return with_names(replace_names(former, text), names)


def with_names(text: str, names: Mapping[str, str]) -> str:
    """Replace every tag in ``text`` by its displayed name."""
    return TAG.sub(lambda tag: names.get(tag[0], tag[0]), text) if "<" in text else text
