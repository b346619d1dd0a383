"""Causes that the speech itself states, found by their connectives; pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from domain.events import Relation
from memory.sentences import sentences
from memory.writers.labels import content_words


@dataclass(frozen=True)
class Stated:
    """A stated relation: ``source`` causes (enables, requires, prevents) ``target``.

    An empty side is what came just before: "Therefore we left" has an empty source.
    """

    relation: Relation
    source: str
    target: str
    quote: str


_REST = r"(?P<{}>[^.!?]+)"
_A, _B = _REST.format("a"), _REST.format("b")

_FORWARD = (
    (Relation.CAUSES, rf"{_A}\b(?:leads? to|led to|results? in|resulted in|causes?|caused)\b{_B}"),
    (Relation.PREVENTS, rf"{_A}\b(?:prevents?|prevented|keeps? us from|kept us from)\b{_B}"),
    (Relation.ENABLES, rf"{_A}\b(?:enables?|enabled|makes? it possible to|allowed us to)\b{_B}"),
    (Relation.CAUSES, rf"{_A},? (?:so that|and therefore|and as a result|which is why)\b{_B}"),
)
_BACKWARD = (
    (Relation.CAUSES, rf"{_A}\b(?:because of|because|due to|as a result of|caused by)\b{_B}"),
    (Relation.REQUIRES, rf"{_A}\b(?:requires?|required|depends? on|depended on)\b{_B}"),
)
_FOLLOWS = re.compile(
    rf"^(?:and |so )?(?:therefore|as a result|that['’]s why|that is why|because of (?:that|this)|"
    rf"for that reason|consequently)\b,? {_B}",
    re.IGNORECASE,
)


def stated(text: str) -> list[Stated]:
    """The relations that a line states, at most one a sentence."""
    found = (_of_sentence(sentence) for sentence in sentences(text))
    return [one for one in found if one is not None]


def _of_sentence(sentence: str) -> Stated | None:
    follows = _FOLLOWS.search(sentence)
    if follows:
        return Stated(Relation.CAUSES, "", follows["b"].strip(), sentence)
    if sentence.rstrip().endswith("?"):
        return None  # A question does not state.
    for forward, patterns in ((False, _BACKWARD), (True, _FORWARD)):
        for relation, pattern in patterns:
            found = re.search(pattern, sentence, re.IGNORECASE)
            if found:
                return _stated(relation, found["a"].strip(), found["b"].strip(), sentence, forward)
    return None


def _stated(relation: Relation, a: str, b: str, quote: str, forward: bool) -> Stated | None:
    # "A requires B" keeps its order; "A because B" says that B causes A.
    keeps = forward or relation == Relation.REQUIRES
    source, target = (a, b) if keeps else (b, a)
    if not content_words(source) or not content_words(target):
        return None  # "The cause is unknown" names no cause.
    return Stated(relation, source, target, quote)
