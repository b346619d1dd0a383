"""What English words can be in a sentence: closed classes by lists, others by a lexicon; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from lemminflect import getAllLemmas


def listed(words: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(words.split())


DETERMINERS = listed(
    """a an the this that these those some any no each every all both another other many much more
    most several few little such own my your his her its our their one two three four five six
    seven eight nine ten eleven twelve"""
)
PRONOUNS = listed(
    """i me we us you he him she her they them it myself yourself himself herself itself ourselves
    themselves mine yours hers theirs ours this that these those here there what which who whom
    something anything nothing one ones each other"""
)
GROUPS = listed("everyone everybody people we us others family crowd team group audience")
PREPOSITIONS = listed(
    """about above across after against along alongside among around at before behind below beneath
    beside between beyond by down during for from in inside into like near of off on onto opposite
    out outside over past through throughout to toward towards under until up upon via with within
    without"""
)
PARTICLES = listed(
    """up down out off away back over on in around along together apart aside by through forward
    forwards backward backwards ahead"""
)
CONJUNCTIONS = listed(
    "and or but so then while as when because since after before until though if whether unless"
    " where how why"
)
BE = listed("be am is are was were been being")
HAVE = listed("have has had having")
DO = listed("do does did")
MODALS = listed("can could may might must shall should will would")
NEGATIONS = listed("not never")
AUXILIARIES = BE | HAVE | DO | MODALS
ADVERBS = listed(
    """again also already always just now then still too very really quite even only once twice
    soon later first finally first next today tonight tomorrow yesterday well maybe perhaps almost
    nearly together forward forwards backward backwards left right straight somewhere
    everywhere please instead meanwhile often usually sometimes never ever here there back away
    aside ahead around slowly so yet as all both"""
)
ALONE = listed("inside outside home upstairs downstairs indoors outdoors")
"""Adverbs that name a place."""
INTERJECTIONS = listed(
    """yes no yeah yep ok okay oh ah hmm um uh hey wow hello hi haha hahaha well alright right come
    sorry thanks thank sure"""
)
NO_ENTITIES = listed(
    """time while moment second minute hour day week month year morning afternoon evening night
    noon today tonight tomorrow yesterday bit way once left right front back side top bottom
    middle direction purpose general fact"""
)
"""Nouns that are no entity: phrases with them say when, how long or whereto."""

_TOKEN = re.compile(r"<\w+>|[^\W_]+(?:[-'][^\W_]+)*|[.,;:!?()]")
_CANNOT = re.compile(r"\b(can)'?t\b|\bcannot\b", re.IGNORECASE)
_CONTRACTED = (
    (re.compile(r"\bwon't\b", re.IGNORECASE), "will not"),
    (re.compile(r"n't\b", re.IGNORECASE), " not"),
    (re.compile(r"\b(let)'s\b", re.IGNORECASE), r"\1 us"),
    (re.compile(r"\b(I)'m\b", re.IGNORECASE), r"\1 am"),
    (re.compile(r"'re\b", re.IGNORECASE), " are"),
    (re.compile(r"'ve\b", re.IGNORECASE), " have"),
    (re.compile(r"'ll\b", re.IGNORECASE), " will"),
    (re.compile(r"'d\b", re.IGNORECASE), " would"),
    (re.compile(r"\b(he|she|it|that|there|here|what|who|where)'s\b", re.IGNORECASE), r"\1 is"),
)
POSSESSIVE = "'s"
NAME, NUMBER, MARK = "NAME", "NUMBER", "MARK"
_MARKS = frozenset(".,;:!?()")


@dataclass(frozen=True)
class Token:
    """A word of a sentence: as written, in lower case, and the parts of speech that it can be."""

    text: str
    word: str
    kinds: frozenset[str]

    @property
    def named(self) -> bool:
        """Whether it is a known person or a tag."""
        return NAME in self.kinds

    @property
    def verb(self) -> bool:
        """Whether it can be a main verb."""
        return "VERB" in self.kinds

    @property
    def nominal(self) -> bool:
        """Whether it can stand in a noun phrase before or as its head."""
        return bool(self.kinds & {"NOUN", "ADJ", "PROPN", NUMBER}) and not self.closed

    @property
    def noun(self) -> bool:
        """Whether it can be the head of a noun phrase."""
        return bool(self.kinds & {"NOUN", "PROPN"}) and not self.closed

    @property
    def closed(self) -> bool:
        """Whether it is of a closed class: a word of grammar rather than of content."""
        return self.word in _CLOSED

    @property
    def mark(self) -> bool:
        """Whether it is punctuation."""
        return MARK in self.kinds


_CLOSED = (PRONOUNS | PREPOSITIONS | CONJUNCTIONS | AUXILIARIES | NEGATIONS) | DETERMINERS - {
    "other",
    "own",
    "little",
}


def tokenize(sentence: str, people: Iterable[str] = ()) -> list[Token]:
    """Return the words and marks of a sentence; a known person's whole name is one token."""
    text = _CANNOT.sub("can not", sentence.replace("’", "'"))
    for pattern, written in _CONTRACTED if "'" in text else ():
        text = pattern.sub(written, text)
    found = _with_names(frozenset(people)).findall(text) if people else _TOKEN.findall(text)
    known = {name.casefold() for name in people}
    return [_token(one, known) for piece in found for one in _possessive(piece, known)]


@lru_cache(256)
def _with_names(people: frozenset[str]) -> re.Pattern[str]:
    names = "|".join(re.escape(name) for name in sorted(people, key=lambda n: (-len(n), n)))
    return re.compile(rf"\b(?:{names})\b(?:'s\b)?|{_TOKEN.pattern}")


def _possessive(piece: str, known: set[str]) -> list[str]:
    """Split ``Ann's`` into the name and its mark."""
    whole = piece.casefold() in known or not piece.endswith(POSSESSIVE)
    return [piece] if whole else [piece.removesuffix(POSSESSIVE), POSSESSIVE]


def _token(text: str, known: set[str]) -> Token:
    word = text.casefold()
    if text.startswith("<") or word in known:
        return Token(text, word, frozenset({NAME}))
    if text == POSSESSIVE:
        return Token(text, word, frozenset())
    if text in _MARKS:
        return Token(text, word, frozenset({MARK}))
    if word.isdigit():
        return Token(text, word, frozenset({NUMBER}))
    return Token(text, word, parts_of_speech(word) or _unknown(word))


def _unknown(word: str) -> frozenset[str]:
    """Return what a word that no lexicon has can be: an adverb by its ending, else a name."""
    return frozenset({"ADV" if word.endswith("ly") else "PROPN"})


@lru_cache(1 << 16)
def parts_of_speech(word: str) -> frozenset[str]:
    """Return what a word in lower case can be, such as NOUN and VERB; empty if it is unknown."""
    return frozenset(getAllLemmas(word)) if word.isascii() else frozenset()


@lru_cache(1 << 16)
def lemma(word: str, kind: str) -> str:
    """Return the base form of a word in lower case: ``put``, ``box``; itself if it is unknown.

    Of a noun that may be either, the plural is taken for what is meant: ``scissors``, ``clothes``.
    """
    found = getAllLemmas(word, upos=kind).get(kind, ()) if word.isascii() else ()
    return word if not found or (kind == "NOUN" and word in found) else str(found[0])


def verb_form(word: str) -> str:
    """Return ``base``, ``third``, ``ing`` or ``past``, of a word that can be a verb."""
    if lemma(word, "VERB") == word:
        return "base"
    if word.endswith("ing"):
        return "ing"
    return "third" if word.endswith("s") else "past"
