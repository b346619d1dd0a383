"""Which skills a question is given: those like it, best first, as far as the prompt has room."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from domain.skills import RoutedSkill, Skill
from skills.review import tokens_of

Vectors = NDArray[np.float32]


def route(
    question: Vectors, skills: Sequence[Skill], vectors: Vectors, above: float, tokens: int
) -> tuple[RoutedSkill, ...]:
    """The skills for a question (section 3).

    Args:
        question: its embedding, shape (D,), length 1.
        skills: those that may be used.
        vectors: their embeddings, shape (N, D), length 1, in the same order.
        above: the cosine that a skill must exceed.
        tokens: room for their instructions.
    """
    scores = [round(float(score), 6) for score in vectors @ question] if skills else []
    close = [(score, one) for score, one in zip(scores, skills, strict=True) if score > above]
    chosen: list[RoutedSkill] = []
    for score, one in sorted(close, key=lambda pair: (-pair[0], pair[1].name)):
        need = tokens_of(one.instructions)
        if need <= tokens:
            tokens -= need
            chosen.append(_routed(one, min(1.0, score)))
    return tuple(chosen)


def _routed(one: Skill, score: float) -> RoutedSkill:
    return RoutedSkill(
        name=one.name,
        version=one.version,
        tone=one.tone,
        score=score,
        instructions=one.instructions,
        policy=one.policy,
    )
