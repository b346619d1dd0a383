"""Routing: the skills for a question, most similar first, within a token limit."""

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
    """Choose the skills for a question (section 3).

    Args:
        question: its embedding, shape (D,), length 1.
        skills: those that may be used.
        vectors: their embeddings, shape (N, D), length 1, in the same order.
        above: the cosine that a skill must exceed.
        tokens: room for their instructions.
    """
    scores = [round(float(score), 6) for score in vectors @ question] if skills else []
    close = [(score, skill) for score, skill in zip(scores, skills, strict=True) if score > above]
    chosen: list[RoutedSkill] = []
    for score, skill in sorted(close, key=lambda pair: (-pair[0], pair[1].name)):
        cost = tokens_of(skill.instructions)
        if cost <= tokens:
            tokens -= cost
            chosen.append(_routed(skill, min(1.0, score)))
    return tuple(chosen)


def _routed(skill: Skill, score: float) -> RoutedSkill:
    return RoutedSkill(
        name=skill.name,
        version=skill.version,
        tone=skill.tone,
        score=score,
        instructions=skill.instructions,
        policy=skill.policy,
    )
