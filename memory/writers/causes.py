"""Finds causal relations that speech states, by causal connectives; pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from domain.memories import Relation
from domain.wording import split_sentences
from memory.writers.labels import content_words


@dataclass(frozen=True)
class StatedCause:
    """A stated relation: ``source`` causes (enables, requires, prevents) ``target``.

    An empty source stands for the preceding statement, as in "Therefore we left".
    """

    relation: Relation
    source: str
    target: str
    quote: str


_CLAUSE = re.compile(r"[^.!?]+")
_BETWEEN_WORDS = r"(?<=[^.!?]){}(?=[^.!?])"
"""A connective stands between words of one clause."""
_FORWARD = (
    (Relation.CAUSES, r"\b(?:leads? to|led to|results? in|resulted in|causes?|caused)\b"),
    (Relation.PREVENTS, r"\b(?:prevents?|prevented|keeps? us from|kept us from)\b"),
    (Relation.ENABLES, r"\b(?:enables?|enabled|makes? it possible to|allowed us to)\b"),
    (Relation.CAUSES, r" (?:so that|and therefore|and as a result|which is why)\b"),
)
_FORWARD_PATTERNS = tuple(
    (relation, re.compile(_BETWEEN_WORDS.format(words), re.I)) for relation, words in _FORWARD
)
_BACKWARD = (
    (Relation.CAUSES, r"\b(?:because of|because|due to|as a result of|caused by)\b"),
    (Relation.REQUIRES, r"\b(?:requires?|required|depends? on|depended on)\b"),
)
_BACKWARD_PATTERNS = tuple(
    (relation, re.compile(_BETWEEN_WORDS.format(words), re.I)) for relation, words in _BACKWARD
)
_CONSEQUENCE = re.compile(
    r"^(?:and |so )?(?:therefore|as a result|that['’]s why|that is why|because of (?:that|this)|"
    r"for that reason|consequently)\b,? (?P<b>[^.!?]+)",
    re.IGNORECASE,
)


def find_stated_causes(text: str) -> list[StatedCause]:
    """Return the relations that a line states, at most one per sentence."""
    causes = (_cause_in_sentence(sentence) for sentence in split_sentences(text))
    return [cause for cause in causes if cause is not None]


def _cause_in_sentence(sentence: str) -> StatedCause | None:
    follows = _CONSEQUENCE.search(sentence)
    if follows:
        return StatedCause(Relation.CAUSES, "", follows["b"].strip(), sentence)
    if sentence.rstrip().endswith("?"):
        return None  # A question does not state.
    for forward, patterns in ((False, _BACKWARD_PATTERNS), (True, _FORWARD_PATTERNS)):
        for relation, pattern in patterns:
            sides = _split_at_connective(pattern, sentence)
            if sides is not None:
                return _stated_cause(relation, *sides, sentence, forward)
    return None


def _split_at_connective(connective: re.Pattern[str], sentence: str) -> tuple[str, str] | None:
    """Return both sides of the last connective of the first clause that has one."""
    for clause in _CLAUSE.finditer(sentence):
        start, end = clause.span()
        if matches := [*connective.finditer(sentence, start, end)]:
            match = matches[-1]
            return sentence[start : match.start()].strip(), sentence[match.end() : end].strip()
    return None


def _stated_cause(
    relation: Relation, a: str, b: str, quote: str, forward: bool
) -> StatedCause | None:
    # "A requires B" keeps its order; "A because B" says that B causes A.
    keeps_order = forward or relation == Relation.REQUIRES
    source, target = (a, b) if keeps_order else (b, a)
    if not content_words(source) or not content_words(target):
        return None  # "The cause is unknown" names no cause.
    return StatedCause(relation, source, target, quote)
