"""Which skills hurt: those that questions do worse with than without (section 3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from domain.skills import Judged

LEAST_USES = 5
MARGIN = 0.05
ALL_WRONG = 3
"""Uses after which a skill that helped none is banned."""


def hurts(given: Sequence[Judged], every: Iterable[Judged]) -> bool:
    """Whether a skill does harm.

    Args:
        given: judged answers to questions that were given the skill.
        every: all judged answers: those of the same types are the running baseline.
    """
    told = [one for one in given if one.right is not None]
    rights = sum(bool(one.right) for one in told)
    if len(told) >= ALL_WRONG and rights == 0:
        return True
    expected = sum(_baselines(every).get(one.question_type, 0.0) for one in told)
    return len(told) >= LEAST_USES and rights / len(told) < expected / len(told) - MARGIN


def _baselines(every: Iterable[Judged]) -> dict[str, float]:
    """The share of right answers by question type."""
    told: dict[str, list[bool]] = {}
    for one in every:
        if one.right is not None:
            told.setdefault(one.question_type, []).append(one.right)
    return {kind: sum(rights) / len(rights) for kind, rights in told.items()}
