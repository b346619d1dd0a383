"""Detects skills that do harm: questions do worse with them than without (section 3).

Only comparable answers are compared: to questions of one type, by one profile, in one run over one
data set. A skill is measured against the answers of other questions only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from domain.skills import ComparedAnswer, ComparisonKey, Share

LEAST_USES = 5
MARGIN = 0.05
ALL_WRONG = 3
"""Uses after which a skill that helped none is banned."""

Shares = Mapping[ComparisonKey, Share]
"""How often answers are right, by what makes them comparable."""


def is_harmful(given: Sequence[ComparedAnswer], own_shares: Shares, all_shares: Shares) -> bool:
    """Check whether a skill does harm.

    Args:
        given: judged answers to questions that were given the skill as it is now.
        own_shares: shares right of all answers that were given it, in any version.
        all_shares: shares right of all answers.
    """
    judged = [answer for answer in given if answer.right is not None]
    if len(judged) >= ALL_WRONG and not any(answer.right for answer in judged):
        return True
    usual = usual_without(own_shares, all_shares)
    comparable = [answer for answer in judged if answer.alike in usual]
    if len(comparable) < LEAST_USES:
        return False
    rights = sum(bool(answer.right) for answer in comparable)
    expected = sum(usual[answer.alike] for answer in comparable)
    return rights / len(comparable) < expected / len(comparable) - MARGIN


def shares(answers: Iterable[ComparedAnswer]) -> Shares:
    """Count how often judged answers are right."""
    counted: dict[ComparisonKey, Share] = {}
    for answer in answers:
        if answer.right is not None:
            judged, right = counted.get(answer.alike, Share(0, 0))
            counted[answer.alike] = Share(judged + 1, right + answer.right)
    return counted


def usual_without(own_shares: Shares, all_shares: Shares) -> dict[ComparisonKey, float]:
    """Return the share right among the other answers; absent where there are none."""
    others = {
        alike: (every.judged - own.judged, every.right - own.right)
        for alike, every in all_shares.items()
        for own in [own_shares.get(alike, Share(0, 0))]
    }
    return {alike: right / judged for alike, (judged, right) in others.items() if judged > 0}
