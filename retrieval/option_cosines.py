"""Scores of evidence by option, from cosines alone, for strategies without other signals."""

from __future__ import annotations

from collections.abc import Sequence

from domain.asking import Evidence
from domain.search import Weighed
from retrieval.line_set import Matrix

TEMPERATURE = 0.05
"""Divisor from cosines to logits of the options."""
DIGITS = 4
"""Decimals of recorded cosines."""


def weigh_by_cosines(
    evidence: Sequence[Evidence], vectors: Sequence[Matrix], claims: Matrix
) -> tuple[Weighed, ...]:
    """Score each piece of evidence by its best cosine with each claim.

    Args:
        evidence: N pieces.
        vectors: of each piece those of its texts, (S, D), unit rows.
        claims: the question joined with each option, (K, D), unit rows.
    """
    return tuple(
        Weighed(
            ref=piece.ref,
            scores=tuple(round(float(value), DIGITS) for value in (each @ claims.T).max(axis=0)),
        )
        for piece, each in zip(evidence, vectors, strict=True)
    )
