"""A question as a strategy searches for it, and how far what is found supports its options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from domain.asking import Evidence
from domain.texts import make_storable
from models.ports import TextEmbedder, embed_queries
from retrieval.word_scores import WordScores

OPTION_WORDS = 0.5
"""Weight of the words of the options beside those of the question, in the order of captions."""
WORDS_A_LOGIT = 4.0
"""Score by words that makes an option e times as likely."""
DIGITS = 4
"""Decimals of recorded support."""
TEMPERATURE = 1.0
"""Divisor from the support of options to logits."""

Vectors = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Asked:
    """A question as it is searched for: ``claims`` join it with each of K options.

    ``vector`` (D,) is the question's, ``claim_vectors`` (K, D) are those of the claims.
    """

    query: str
    vector: Vectors
    options: tuple[str, ...]
    claims: tuple[str, ...]
    claim_vectors: Vectors

    def support(self, words: Vectors, vector: Vectors) -> tuple[float, ...]:
        """Return how far a piece supports each option: by words, and between equals by likeness.

        Args:
            words: (K,), how well its words match each claim.
            vector: (D,), the piece's.
        """
        cosines = (self.claim_vectors @ vector).astype(np.float64)
        return tuple(round(float(one), DIGITS) for one in words / WORDS_A_LOGIT + cosines)


@dataclass(frozen=True)
class Supporting:
    """A piece of evidence, and how far it supports each option; empty without options."""

    piece: Evidence
    support: tuple[float, ...] = ()


def ask(text: TextEmbedder, query: str, options: Sequence[str]) -> Asked:
    """Return a question with these options as it is searched for with a text encoder."""
    storable = make_storable(query)
    choices = tuple(make_storable(option) for option in options)
    claims = tuple(f"{storable} {option}" for option in choices)
    vectors = embed_queries(text, [storable, *claims])
    return Asked(storable, vectors[0], choices, claims, vectors[1:])


class AskedWords:
    """How well N texts match a question in words.

    Attributes:
        words: (N,), of the question, and half as much of the option that matches best.
        claims: (K, N), of the question and each option together.
    """

    def __init__(self, scores: WordScores, asked: Asked) -> None:
        question = scores.of(asked.query)
        options = [scores.of(option) for option in asked.options]
        self.words = question + OPTION_WORDS * np.max([0 * question, *options], axis=0)
        shape = len(options), len(question)
        self.claims = np.array([question + one for one in options]).reshape(shape)

    def best_of_options(self) -> list[tuple[int, int, float]]:
        """Return of each option its number, its best text's number and that text's score."""
        return [
            (option, int(scores.argmax()), float(scores.max()))
            for option, scores in enumerate(self.claims)
            if scores.size and scores.max() > 0
        ]


def best_by_option(found: Sequence[tuple[int, float, str]]) -> list[str]:
    """Return the refs that are best for an option, each once, from options, scores and refs."""
    refs = dict.fromkeys(sorted({option for option, _, _ in found}), (-1.0, ""))
    for option, score, ref in found:
        refs[option] = max(refs[option], (score, ref), key=lambda pair: pair[0])
    return list(dict.fromkeys(ref for _, ref in refs.values()))
