"""Which option of a question memory supports, from the relevance of every cell to each."""

from __future__ import annotations

from dataclasses import replace
from string import ascii_uppercase

import numpy as np

from domain.ranking import OptionSupport
from memory.retrieval.field import Field, Scores
from memory.retrieval.moments import line_scores, lines_of
from memory.retrieval.panorama import Panorama
from memory.retrieval.ranking import Asked

TOP_CELLS = 50
"""Cells that have a say: repeated support counts, a long tail does not."""


def soft_maximum(scores: Scores, top: int = TOP_CELLS) -> Scores:
    """The log of the mean exponential of the ``top`` highest of each row, (O, N) to (O,)."""
    best = np.sort(scores, axis=1)[:, -top:]
    peak = best.max(axis=1)
    return np.asarray(peak + np.log(np.exp(best - peak[:, None]).mean(axis=1)))


def shares(scores: Scores) -> Scores:
    """Positive shares that sum to 1, falling with the distance from the best, shape (O,)."""
    weight = np.exp(scores - scores.max())
    return np.asarray(weight / weight.sum())


def leaning(field: Field) -> Field:
    """The field with every option's cells moved by half the log of its share.

    So the moments that come first are those that speak for the option that will be chosen.
    """
    if not len(field.options):
        return field
    share = shares(soft_maximum(field.support))
    lean = 0.5 * np.log(np.maximum(share, 1e-3))
    return replace(field, options=field.options + lean[:, None])


def supports(
    view: Panorama, asked: Asked, field: Field, refs: int = 3
) -> tuple[OptionSupport, ...]:
    """How well memory supports each option, with the ``refs`` best lines for each."""
    if not asked.options:
        return ()
    scores = soft_maximum(field.support)
    return tuple(
        OptionSupport(
            letter=ascii_uppercase[number],
            text=option,
            score=float(scores[number]),
            share=float(share),
            evidence=_refs(view, asked, field, number, refs),
        )
        for number, (option, share) in enumerate(zip(asked.options, shares(scores), strict=True))
    )


def _refs(view: Panorama, asked: Asked, field: Field, option: int, refs: int) -> tuple[str, ...]:
    cells = np.argsort(-field.options[option], kind="stable")[: 4 * refs]
    lines = lines_of(view, cells)
    scores = line_scores(view, asked, field, lines)[option]
    best: dict[int, str] = {}
    for i in np.argsort(-scores, kind="stable"):
        best.setdefault(int(view.cell_of_line[lines[i]]), f"m{view.line(int(lines[i]))[1].id}")
    return tuple(best.values())[:refs]
