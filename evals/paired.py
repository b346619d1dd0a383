"""Paired comparison: the same questions answered in two ways, and whether they differ by chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from domain.base import Frozen
from evals.sampling import figure
from evals.tables import AnsweredQuestion, Effect


class Flip(Frozen):
    """A question that only one of both answers rightly."""

    id: str
    question: str
    types: tuple[str, ...]
    better: bool
    first: str
    second: str
    first_trajectory: str
    second_trajectory: str


class Comparison(Frozen):
    """Two compared runs. ``alone`` counts questions that only one of them has judged."""

    effect: Effect
    changes: tuple[Flip, ...]
    alone: int


def mcnemar(better: int, worse: int) -> float:
    """Return the two-sided p of McNemar's exact test: changes are as likely either way.

    The binomial distribution of ``better`` among all changes (Edwards, 1948); 1 without changes.
    """
    # SciPy's statistics are slow to import; only comparisons need them.
    from scipy.stats import binomtest

    changed = better + worse
    return float(binomtest(better, changed, 0.5).pvalue) if changed else 1.0


def effect(
    first: str, second: str, before: Sequence[AnsweredQuestion], after: Sequence[AnsweredQuestion]
) -> Effect | None:
    """Compare the second way with the first; None if no question was judged in both."""
    pairs = list(paired(before, after).values())
    if not pairs:
        return None
    better = sum(
        first_row.right is False and second_row.right is True for first_row, second_row in pairs
    )
    worse = sum(
        first_row.right is True and second_row.right is False for first_row, second_row in pairs
    )
    return Effect(
        first=first,
        second=second,
        questions=len(pairs),
        before=figure(first_row.right for first_row, _ in pairs),
        after=figure(second_row.right for _, second_row in pairs),
        difference=figure(float(bool(b.right)) - float(bool(a.right)) for a, b in pairs),
        better=better,
        worse=worse,
        p=mcnemar(better, worse),
    )


def paired(
    before: Sequence[AnsweredQuestion], after: Sequence[AnsweredQuestion]
) -> Mapping[str, tuple[AnsweredQuestion, AnsweredQuestion]]:
    """Pair the same questions, judged both ways, by id; an edited question is not the same."""
    known = {row.id: row for row in before if row.right is not None}
    fields = ("question", "options", "reference")
    return {
        row.id: (known[row.id], row)
        for row in after
        if row.right is not None
        and row.id in known
        and all(getattr(known[row.id], name) == getattr(row, name) for name in fields)
    }


def changes(before: Sequence[AnsweredQuestion], after: Sequence[AnsweredQuestion]) -> list[Flip]:
    """Return the questions that only one of both answers rightly, losses first."""
    flips = [
        Flip(
            id=row.id,
            question=row.question,
            types=row.types,
            better=bool(other_row.right),
            first=row.option or row.answer,
            second=other_row.option or other_row.answer,
            first_trajectory=row.trajectory,
            second_trajectory=other_row.trajectory,
        )
        for row, other_row in paired(before, after).values()
        if row.right is not other_row.right
    ]
    return sorted(flips, key=lambda row: (row.better, row.id))
