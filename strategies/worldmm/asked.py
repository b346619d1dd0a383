"""A question as WorldMM searches for it, and how far what is found supports its options; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from domain.asking import Evidence
from strategies.worldmm.graph import Vectors
from strategies.worldmm.index import ScaleView

OPTION_WORDS = 0.5
"""Weight of the words of the options beside those of the question, in the order of captions."""
WORDS_A_LOGIT = 4.0
"""Score by words that makes an option e times as likely."""
DIGITS = 4
"""Decimals of recorded support."""


@dataclass(frozen=True, eq=False)
class Asked:
    """A question as it is searched for: ``claims`` join it with each option.

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


class ScaleWords:
    """How well the captions of a scale match a question in words.

    Attributes:
        words: (C,), of the question, and half as much of the option that matches best.
        claims: (K, C), of the question and each option together.
    """

    def __init__(self, scale: ScaleView, asked: Asked) -> None:
        question = scale.words.of(asked.query)
        options = [scale.words.of(option) for option in asked.options]
        self.words = question + OPTION_WORDS * np.max([0 * question, *options], axis=0)
        shape = len(options), len(question)
        self.claims = np.array([question + one for one in options]).reshape(shape)

    def best_of_options(self) -> list[tuple[int, int, float]]:
        """Return of each option its number, its best caption and that caption's score."""
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
