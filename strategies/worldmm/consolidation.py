"""Consolidation of new semantic triples with those like them, decided by a language model; pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from pydantic import NonNegativeInt

from domain.base import Frozen
from domain.stated import Triple
from strategies.worldmm.graph import Vectors
from strategies.worldmm.semantic import SemanticChange, SemanticTriple


class Consolidation(Frozen):
    """Which candidates a new triple replaces, by position, and how it reads then."""

    replaced: tuple[NonNegativeInt, ...] = ()
    triple: Triple


Consolidate = Callable[[Triple, Sequence[Triple]], Consolidation]
"""Decides on a new triple and the candidates that are like it, most alike first."""


def candidates_for(vector: Vectors, existing: Vectors, least: float, most: int) -> tuple[int, ...]:
    """Return the existing triples that a new one may replace, most alike first.

    Args:
        vector: (D,) of the new triple's text, unit.
        existing: (N, D) of the texts of all triples that are not closed, unit rows.
        least: cosine of a candidate.
    """
    cosines = existing @ vector
    order = np.argsort(-cosines, kind="stable")[:most]
    return tuple(int(number) for number in order if cosines[number] >= least)


def complaints_about(decision: Consolidation, candidates: int) -> list[str]:
    """Return what is wrong with a decision about so many candidates, for the model to repair."""
    unknown = sorted({number for number in decision.replaced if number >= candidates})
    numbers = ", ".join(map(str, unknown))
    return [f"there is no existing triple {numbers}: they are numbered from 0"] if unknown else []


def consolidate(
    new: SemanticTriple, candidates: Sequence[SemanticTriple], decide: Consolidate, clip: int
) -> SemanticChange:
    """Let a decision close what a new triple replaces.

    What it rests on and on how many occasions is joined with that of the triples that say the same;
    a contradiction's evidence is not its own, but which it is only the decision knows: both are
    joined.

    Args:
        candidates: existing triples like it, most alike first.
        decide: the decision; not asked where there are no candidates.
        clip: from which on the change is known.

    Raises:
        ValueError: the decision replaces what is no candidate.
    """
    if not candidates:
        return SemanticChange(added=(new.model_copy(update={"from_clip": clip}),))
    decision = decide(new.triple, [one.triple for one in candidates])
    if wrong := complaints_about(decision, len(candidates)):
        raise ValueError(wrong[0])
    replaced = [candidates[number] for number in dict.fromkeys(decision.replaced)]
    parts = [*replaced, new]
    evidence = dict.fromkeys(ref for one in parts for ref in one.evidence)
    joined = SemanticTriple(
        triple=decision.triple,
        occasions=max(len(evidence), *(one.occasions for one in parts)),
        days=tuple(sorted({day for one in parts for day in one.days})),
        evidence=tuple(evidence),
        from_clip=clip,
    )
    closed = tuple(one.model_copy(update={"to_clip": clip}) for one in replaced)
    return SemanticChange(closed=closed, added=(joined,))
