"""Entities and triples of a line by rules of English; other languages have none; pure."""

from __future__ import annotations

import re
from collections.abc import Collection

from domain.base import Frozen
from domain.people import TAG
from retrieval.english.clauses import ClauseReader, Triple
from retrieval.english.phrases import EntityKind, NamedEntity
from retrieval.english.words import parts_of_speech, tokenize
from retrieval.heuristics.actors import NOT_PEOPLE
from retrieval.heuristics.language import ENGLISH, detect_language

FIRST_PERSON_SHARE = 0.1
"""Least share of sentences with "I" in descriptions that a narrator writes."""

_SPOKEN = re.compile(rf"(?P<who>{TAG.pattern}|[A-Z][\w'’]*(?: [A-Z][\w'’]*){{0,2}}): ?(?P<text>.+)")
_QUOTED = re.compile(r"[“\"][^“”\"]*+[”\"]")
_BRACKETED = re.compile(r"\([^()]*+\)")
_FIRST_PERSON = re.compile(r"\b(?:I|my|me)\b")
_KIND_OF_LINE = frozenset({"Seen", "Heard", "Screen", "Music", "Sound"})
"""What stands before a colon without being a speaker."""
_PIECES = re.compile(r"(?<=[.!?;])\s+")


class Known(Frozen):
    """Who is known of a video, and whether its descriptions are written by one who takes part."""

    people: tuple[str, ...] = ()
    narrated: bool = False


class StatedFacts(Frozen):
    """The entities and triples of a text, in order, each once."""

    entities: tuple[NamedEntity, ...] = ()
    triples: tuple[Triple, ...] = ()


def is_narrated(descriptions: Collection[str]) -> bool:
    """Check whether descriptions are written in the first person."""
    first = sum(1 for text in descriptions if _FIRST_PERSON.search(text))
    return first > FIRST_PERSON_SHARE * len(descriptions)


def extract_sentence(sentence: str, known: Known) -> StatedFacts:
    """Return the entities and triples of a line, which one person may have said."""
    speaker, text = _speaker_of(sentence)
    if speaker in NOT_PEOPLE:
        return StatedFacts()
    entities: dict[str, NamedEntity] = {}
    triples: dict[Triple, None] = {}
    if speaker:
        entities[speaker] = NamedEntity(name=speaker, kind=EntityKind.PERSON)
    for piece in _PIECES.split(_BRACKETED.sub(" ", _QUOTED.sub(" ", text))):
        if not _is_english(piece):
            continue
        people = (*known.people, speaker) if speaker else known.people
        reader = ClauseReader(tokenize(piece, _names(people)), speaker, known.narrated)
        reader.read()
        entities |= {name: one for name, one in reader.entities.items() if name not in entities}
        triples |= reader.triples
    return StatedFacts(entities=tuple(entities.values()), triples=tuple(triples))


def _names(people: Collection[str]) -> tuple[str, ...]:
    """Return whole names; tags are found without being known."""
    return tuple(sorted({name for name in people if not TAG.fullmatch(name)}))


def _speaker_of(sentence: str) -> tuple[str, str]:
    match = _SPOKEN.fullmatch(sentence.strip())
    if match is None or match["who"] in _KIND_OF_LINE:
        return "", sentence
    return match["who"], match["text"]


def _is_english(text: str) -> bool:
    """Check whether a piece is English: by its function words, or its words are in the lexicon."""
    if not text.isascii() and sum(letter.isascii() for letter in text) < 0.9 * len(text):
        return False
    language = detect_language(text)
    return language is None or ENGLISH in language.codes or _known_share(text) >= 0.5


def _known_share(text: str) -> float:
    words = re.findall(r"[a-z]+", text.casefold())
    return sum(bool(parts_of_speech(word)) for word in words) / len(words) if words else 0.0
