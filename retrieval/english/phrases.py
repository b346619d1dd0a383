"""Noun phrases of an English sentence, and the kinds of entities that they name; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from domain.base import Frozen
from retrieval.english.verbs import verb_group_at
from retrieval.english.words import (
    ADVERBS,
    ALONE,
    CONJUNCTIONS,
    DETERMINERS,
    GROUPS,
    NO_ENTITIES,
    NUMBER,
    POSSESSIVE,
    PREPOSITIONS,
    PRONOUNS,
    Token,
    lemma,
    listed,
    verb_form,
)

MOST_WORDS = 5
"""Words of a noun phrase; more are no phrase but a list that was not understood."""

_PLACES = listed(
    """airport apartment balcony bank bar basement bathroom beach bedroom bridge building bus cafe
    canteen car church cinema city corner corridor countryside courtyard door doorway downstairs
    elevator entrance exit factory farm field floor foyer garage garden gate ground hall hallway
    home hospital hotel house indoors inside kitchen lab library living lobby mall market museum
    office outdoors outside park path playground porch restaurant road room school shop sidewalk
    stage staircase stairs station store street studio supermarket theater toilet town upstairs
    village yard zoo"""
)
"""Heads of phrases that name a place."""
_AFTER_PREDICATE = PREPOSITIONS - {"of"}
"""What may follow a verb, but rarely a noun that only looks like one."""
_ABSTRACT = ("tion", "sion", "ment", "ness", "ity", "ance", "ence", "ship", "ism", "ing", "logy")
"""Endings of nouns that name no thing."""


class EntityKind(StrEnum):
    """What an entity is."""

    PERSON = "PERSON"
    GROUP = "GROUP"
    LOCATION = "LOCATION"
    OBJECT = "OBJECT"
    CONCEPT = "CONCEPT"


class NamedEntity(Frozen):
    """An entity of a caption: people as they are called, else lower case and singular."""

    name: str
    kind: EntityKind


@dataclass(frozen=True)
class Phrase:
    """A noun phrase: its name as an entity, its head, and whether it stands for something else.

    With ``quality`` it is an adjective, as what something is.
    """

    name: str
    head: str
    named: bool = False
    pronoun: bool = False
    quality: bool = False

    @property
    def names_entity(self) -> bool:
        """Whether it names something: pronouns, times and directions do not."""
        named = self.named or self.name == "I"
        return named or not (self.pronoun or self.head in NO_ENTITIES)

    @property
    def entity(self) -> NamedEntity | None:
        """What it names; None if that is nothing."""
        if not self.names_entity:
            return None
        if self.name == "I" or self.named:
            return NamedEntity(name=self.name, kind=EntityKind.PERSON)
        kind = EntityKind.CONCEPT if self.quality else _kind(self.head)
        return NamedEntity(name=self.name, kind=kind)


def _kind(head: str) -> EntityKind:
    if head in GROUPS:
        return EntityKind.GROUP
    if head in _PLACES:
        return EntityKind.LOCATION
    return EntityKind.CONCEPT if head.endswith(_ABSTRACT) else EntityKind.OBJECT


def head_of(name: str) -> str:
    """Return the head of an entity's name: "cup" of "red cup", "bottle" of "bottle of water"."""
    before, _, _ = name.partition(" of ")
    return before.rsplit(" ", 1)[-1]


def phrase_at(tokens: Sequence[Token], start: int) -> tuple[Phrase, int] | None:
    """Return the noun phrase that begins at a token, and the token after it."""
    if start >= len(tokens):
        return None
    token = tokens[start]
    if token.named:
        return _of_name(tokens, start)
    if token.word in GROUPS:
        return Phrase("we" if token.word == "us" else token.word, token.word), start + 1
    if token.word in ALONE and not _continues(tokens, start + 1):
        return Phrase(token.word, token.word), start + 1
    return _of_nouns(tokens, start) or _of_pronoun(token, start)


def _of_pronoun(token: Token, start: int) -> tuple[Phrase, int] | None:
    if token.word in ("i", "me"):
        return Phrase("I", "I", pronoun=True), start + 1
    if token.word in PRONOUNS:
        return Phrase(token.word, token.word, pronoun=True), start + 1
    return None


def _of_name(tokens: Sequence[Token], start: int) -> tuple[Phrase, int]:
    """Return a person, or what is theirs: "Ann's cup"."""
    name = tokens[start].text
    if start + 1 < len(tokens) and tokens[start + 1].word == POSSESSIVE:
        found = _of_nouns(tokens, start + 2)
        if found:
            owned, end = found
            return Phrase(f"{name}'s {owned.name}", owned.head), end
        return Phrase(name, name, named=True), start + 2
    return Phrase(name, name, named=True), start + 1


def _of_nouns(tokens: Sequence[Token], start: int) -> tuple[Phrase, int] | None:
    begin = start
    while begin < len(tokens) and _determines(tokens, begin):
        begin += 1
    end = begin
    while end < len(tokens) and _continues(tokens, end, determined=begin > start, first=begin):
        end += 1
    while end > begin and not tokens[end - 1].noun:
        end -= 1
    words = tokens[begin:end]
    if not words or len(words) > MOST_WORDS or (begin == start and _is_bare(words)):
        return None
    return _with_of(tokens, words, end)


def _is_bare(words: Sequence[Token]) -> bool:
    """Check for an adverb or a verb in -ing that could pass for a noun: "walk holding it"."""
    alone = len(words) == 1 and words[0].verb and verb_form(words[0].word) == "ing"
    return alone or words[-1].word in ADVERBS


def _determines(tokens: Sequence[Token], at: int) -> bool:
    """Check for a determiner; "that" and "her" are pronouns where no noun follows."""
    token = tokens[at]
    if token.word in DETERMINERS or NUMBER in token.kinds:
        return True
    return token.word == "of" and at > 0 and tokens[at - 1].word in DETERMINERS


def _continues(
    tokens: Sequence[Token], at: int, *, determined: bool = False, first: int = -1
) -> bool:
    """Check whether a token goes on with a noun phrase rather than with its verb."""
    if at >= len(tokens):
        return False
    token = tokens[at]
    if not token.nominal:
        return determined and at == first and _is_participle(tokens, at)
    if token.word in ADVERBS and not (determined and at == first):
        return False
    return at in (first, -1) or not _is_finite(tokens, at)


def _is_participle(tokens: Sequence[Token], at: int) -> bool:
    """Check for a participle before a noun: "the dining table"."""
    verb = tokens[at].verb and not tokens[at].closed and verb_form(tokens[at].word) != "base"
    return verb and at + 1 < len(tokens) and tokens[at + 1].nominal


def _is_finite(tokens: Sequence[Token], at: int) -> bool:
    """Check whether a token after a noun is rather its verb: "the man walks to"."""
    token, after = tokens[at], tokens[at + 1] if at + 1 < len(tokens) else None
    if not token.verb or after is None or not tokens[at - 1].noun:
        return False
    plural = lemma(tokens[at - 1].word, "NOUN") != tokens[at - 1].word
    if verb_form(token.word) in ("base", "ing") and not plural:
        return False
    return after.word in DETERMINERS or after.word in _AFTER_PREDICATE or after.named


def _with_of(tokens: Sequence[Token], words: Sequence[Token], end: int) -> tuple[Phrase, int]:
    head = _singular(words[-1])
    name = " ".join([*map(_written, words[:-1]), head])
    if end + 1 < len(tokens) and tokens[end].word == "of":
        inner = phrase_at(tokens, end + 1)
        if inner and not inner[0].pronoun:
            return Phrase(f"{name} of {inner[0].name}", head), inner[1]
    return Phrase(name, head), end


def _written(token: Token) -> str:
    """Return a word in lower case; names that no lexicon has stay as they are."""
    return token.text if "PROPN" in token.kinds else token.word


def _singular(token: Token) -> str:
    return lemma(token.word, "NOUN") if "NOUN" in token.kinds else _written(token)


def phrases_at(
    tokens: Sequence[Token], start: int, *, subjects: bool = False
) -> tuple[tuple[Phrase, ...], int]:
    """Return the noun phrases joined by commas and "and" from a token, and the token after.

    Where they are not ``subjects``, one before a verb begins the next clause instead: "I hold the
    cup and Ann opens the door".
    """
    found: list[Phrase] = []
    end = start
    while (piece := phrase_at(tokens, end)) is not None:
        found.append(piece[0])
        end = piece[1]
        after = _after_join(tokens, end)
        if after is None or not _begins_phrase(tokens, after, subjects=subjects):
            break
        end = after
    return tuple(found), end


def _after_join(tokens: Sequence[Token], at: int) -> int | None:
    after = at
    while after < len(tokens) and tokens[after].word in (",", "and", "or"):
        after += 1
    return after if after > at else None


def _begins_phrase(tokens: Sequence[Token], at: int, *, subjects: bool) -> bool:
    """Check whether what follows "and" is another noun phrase rather than another clause."""
    piece = phrase_at(tokens, at)
    if piece is None or (piece[0].pronoun and piece[0].name != "I"):
        return False
    if not subjects and verb_group_at(tokens, piece[1]) is not None:
        return False
    bare = not tokens[at].named and tokens[at].word not in DETERMINERS
    after = tokens[piece[1]] if piece[1] < len(tokens) else None
    if bare and tokens[at].verb and after is not None and not _ends_list(after):
        return False
    return not (bare and piece[1] == at + 1 and tokens[at].verb and "NOUN" not in tokens[at].kinds)


def _ends_list(token: Token) -> bool:
    return token.mark or token.word in CONJUNCTIONS


def all_phrases(tokens: Sequence[Token]) -> Iterator[Phrase]:
    """Yield every noun phrase of a sentence that names something, in order."""
    at = 0
    while at < len(tokens):
        piece = phrase_at(tokens, at)
        if piece is None:
            at += 1
            continue
        yield piece[0]
        at = max(piece[1], at + 1)
