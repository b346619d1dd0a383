"""Which skills hurt: those that questions do worse with than without (section 3).

Only like is compared with like: answers to questions of one type, by one profile, in one run over
one data set. The uses of a skill are left out of what it is measured by.
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


def hurts(given: Sequence[ComparedAnswer], own: Shares, every: Shares) -> bool:
    """Whether a skill does harm.

    Args:
        given: judged answers to questions that were given the skill as it is now.
        own: those of all that were given it, in any version.
        every: those of all answers, whatever they were given.
    """
    told = [one for one in given if one.right is not None]
    if len(told) >= ALL_WRONG and not any(one.right for one in told):
        return True
    usual = usual_without(own, every)
    known = [one for one in told if one.alike in usual]
    if len(known) < LEAST_USES:
        return False
    rights = sum(bool(one.right) for one in known)
    expected = sum(usual[one.alike] for one in known)
    return rights / len(known) < expected / len(known) - MARGIN


def shares(answers: Iterable[ComparedAnswer]) -> Shares:
    """How often judged answers are right."""
    counted: dict[ComparisonKey, Share] = {}
    for one in answers:
        if one.right is not None:
            judged, right = counted.get(one.alike, Share(0, 0))
            counted[one.alike] = Share(judged + 1, right + one.right)
    return counted


def usual_without(own: Shares, every: Shares) -> dict[ComparisonKey, float]:
    """The share right of the answers that are not a skill's own; absent where there are none."""
    others = {
        alike: (all_.judged - mine.judged, all_.right - mine.right)
        for alike, all_ in every.items()
        for mine in [own.get(alike, Share(0, 0))]
    }
    return {alike: right / judged for alike, (judged, right) in others.items() if judged > 0}
