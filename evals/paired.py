"""The same questions answered in two ways: what changed, and is that more than chance?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from domain.base import Frozen
from evals.tables import AnsweredQuestion, Effect, figure


class Flip(Frozen):
    """A question that one answers rightly and the other does not."""

    id: str
    question: str
    types: tuple[str, ...]
    better: bool
    first: str
    second: str
    first_trajectory: str
    second_trajectory: str


class Comparison(Frozen):
    """Two runs beside each other. ``alone`` counts questions that only one of them has judged."""

    effect: Effect
    changes: tuple[Flip, ...]
    alone: int


def mcnemar(better: int, worse: int) -> float:
    """The two-sided p of McNemar's exact test: changes are as likely either way.

    The binomial distribution of ``better`` of all that changed (Edwards, 1948); 1 of no change.
    """
    from scipy.stats import binomtest

    changed = better + worse
    return float(binomtest(better, changed, 0.5).pvalue) if changed else 1.0


def effect(
    first: str, second: str, before: Sequence[AnsweredQuestion], after: Sequence[AnsweredQuestion]
) -> Effect | None:
    """The second way of answering beside the first; None where no question was judged in both."""
    pairs = list(paired(before, after).values())
    if not pairs:
        return None
    better = sum(one.right is False and other.right is True for one, other in pairs)
    worse = sum(one.right is True and other.right is False for one, other in pairs)
    return Effect(
        first=first,
        second=second,
        questions=len(pairs),
        before=figure(one.right for one, _ in pairs),
        after=figure(other.right for _, other in pairs),
        difference=figure(float(bool(b.right)) - float(bool(a.right)) for a, b in pairs),
        better=better,
        worse=worse,
        p=mcnemar(better, worse),
    )


def paired(
    before: Sequence[AnsweredQuestion], after: Sequence[AnsweredQuestion]
) -> Mapping[str, tuple[AnsweredQuestion, AnsweredQuestion]]:
    """The same questions, judged both ways, by id; one that was changed is not the same."""
    known = {row.id: row for row in before if row.right is not None}
    return {
        row.id: (known[row.id], row)
        for row in after
        if row.right is not None and row.id in known and _same(known[row.id], row)
    }


def _same(one: AnsweredQuestion, other: AnsweredQuestion) -> bool:
    told = ("question", "options", "reference")
    return all(getattr(one, name) == getattr(other, name) for name in told)


def changes(before: Sequence[AnsweredQuestion], after: Sequence[AnsweredQuestion]) -> list[Flip]:
    """The questions that one answers rightly and the other does not, those lost first."""
    found = [
        Flip(
            id=one.id,
            question=one.question,
            types=one.types,
            better=bool(other.right),
            first=one.option or one.answer,
            second=other.option or other.answer,
            first_trajectory=one.trajectory,
            second_trajectory=other.trajectory,
        )
        for one, other in paired(before, after).values()
        if one.right is not other.right
    ]
    return sorted(found, key=lambda one: (one.better, one.id))
