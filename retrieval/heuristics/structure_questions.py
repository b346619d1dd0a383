"""What a question asks of how a video is built, by its likeness to examples."""

from __future__ import annotations

import re
import tomllib
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import NamedTuple

import numpy as np

from domain.sentences import KIND_WORDS
from models.ports import TextEmbedder
from retrieval.relevance import CosineScale
from retrieval.terms import content_words, terms


class Asks(StrEnum):
    """What can be told from order, people and counts, whatever the words of the question."""

    PEOPLE = "people"
    SPEAKERS = "speakers"
    BEGINNING = "beginning"
    END = "end"
    ABOUT = "about"
    OUTLINE = "outline"
    THINGS = "things"
    LAST_SEEN = "last_seen"
    READ = "read"


NEAREST = 2
"""Examples of a kind whose mean likeness counts: one alone may be like by chance."""
LEAST = 0.55
"""Nearness in [0, 1] below which a question is like none of the examples."""
_ORDINARY = "ordinary"


class StructureQuestions:
    """Tells questions about structure from ordinary ones with a text encoder; thread-safe."""

    def __init__(self, text: TextEmbedder, scale: CosineScale) -> None:
        self._text, self._scale = text, scale
        self._kinds = [kind for kind, examples in _examples().items() for _ in examples]
        texts = [example for examples in _examples().values() for example in examples]
        self._vectors = text.embed(texts)

    def of(self, question: str) -> Asks | None:
        """Return what a question asks for; None for an ordinary one. Names should be "she"."""
        cosines = self._vectors @ self._text.embed([question])[0]
        likeness = {
            kind: float(np.sort(cosines[[one == kind for one in self._kinds]])[-NEAREST:].mean())
            for kind in _examples()
        }
        best = max(likeness, key=lambda kind: likeness[kind])
        near = self._scale.nearness(likeness[best]) >= LEAST
        return Asks(best) if near and best != _ORDINARY else None


@cache
def _examples() -> dict[str, list[str]]:
    file = resources.files(__package__) / "structure_questions.toml"
    return tomllib.loads(file.read_text("utf-8"))


_OF_KIND = re.compile(
    r"\b(?:what|which)\s+(?:(?!(?:do|does|did|is|are|was|were|can|the)\b)\w+\s+){0,2}"
    rf"(?:{KIND_WORDS})\b\s*(?:$|[?.!]|(?:is|are|was|were|can|could|appears?|shows?|stands?|lies?|hangs?|sits?)\b)",
    re.IGNORECASE,
)


def asks_for_kind(question: str) -> bool:
    """Check whether a question asks which things of a kind there are, such as animals (English)."""
    return _OF_KIND.search(question) is not None


LONGEST = 500
"""Characters of a question about order, at most."""


class Order(NamedTuple):
    """A question about what comes beside a moment, or when something comes up first or last.

    ``said``: it asks when somebody speaks of it, rather than when it is there.
    """

    place: str
    subject: str
    said: bool = False


_SIDE = re.compile(r"\b(after|before|following)\s+(\S.*)", re.IGNORECASE | re.DOTALL)
_FIRST = re.compile(r"\b(first|last)\b", re.IGNORECASE)
_WHEN = re.compile(r"\s*(?:when|at (?:what|which) (?:time|point|moment))\b", re.IGNORECASE)
_WORDS = re.compile(r"[^\W_]+")
_SPOKEN_OF = re.compile(
    r"\b(?:mention|nam|talk|discuss|s[pa]id|say|spoke|br[io]|c[ao]mes? up)", re.IGNORECASE
)
_TELLING = frozenset(
    terms(
        "mention mentions mentioned come comes came happen happens happened follow follows "
        "show shows shown see seen appear appears appeared talk talks talked tell tells told "
        "right just directly immediately shortly word words thing sentence speak speaks "
        "spoken appearance bring brings brought name named video film clip discussed discuss "
        "hear heard start starts "
    )
)
"""Words of a question that say nothing of its subject."""


def order_of(question: str) -> Order | None:
    """Return what a question asks of the order of things (English); None for any other.

    Nothing but the moment, or the subject, may be named in it: what somebody does with a thing
    after a moment is asked of the thing.
    """
    question = question.strip().rstrip("?.! ")
    if len(question) > LONGEST:
        return None
    if (side := _SIDE.search(question)) and _is_bare(question[: side.start()]):
        place = "before" if side[1].lower() == "before" else "after"
        return Order(place, without_telling(side[2]) or side[2])
    if _WHEN.match(question) and (first := _FIRST.search(question)):
        subject = without_telling(question[question.find(" ") :].replace(first[1], " ", 1))
        said = _SPOKEN_OF.search(question) is not None
        return Order(first[1].lower(), subject, said) if content_words(subject) else None
    return None


def without_telling(text: str) -> str:
    """Return a text without the words that say nothing of its subject."""
    return _WORDS.sub(lambda word: "" if _TELLING & {*terms(word[0])} else word[0], text).strip()


def _is_bare(text: str) -> bool:
    asks = re.search(r"\b(?:what|who)\b", text, re.IGNORECASE)
    return asks is not None and not content_words(without_telling(text))
