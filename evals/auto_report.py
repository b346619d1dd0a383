"""The strategy that was learned for each question, compared with the best single strategy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from agent.strategy import AUTO
from domain.evaluation import QuestionPart, RunSettings
from evals.paired import effect
from evals.tables import (
    AnsweredQuestion,
    AutoReport,
    ChosenStrategy,
    Effect,
    figure,
    main_arm,
)

CHANCE = 0.05
"""Probability of McNemar's test below which a difference is not taken to be chance."""

Arms = Mapping[str, Sequence[AnsweredQuestion]]
"""The judged answers of each strategy, by its name."""


def auto_report(rows: Sequence[AnsweredQuestion], settings: RunSettings) -> AutoReport | None:
    """Compare ``auto`` with single strategies; None where it was not asked, or nothing is judged.

    Args:
        rows: the judged answers of a run, in all arms and parts.
    """
    if AUTO not in settings.strategies:
        return None
    tested = _by_strategy(rows, settings, QuestionPart.TEST)
    learned = _by_strategy(rows, settings, QuestionPart.LEARN)
    auto = tested.pop(AUTO)
    best = _beside(best_of(tested), tested, auto)
    if best is None:
        return None
    known = best_of(learned)
    return AutoReport(
        best=best,
        learned=_beside(known, tested, auto) if known != best.first else None,
        chosen=tuple(_chosen(auto)),
        verdict=verdict(best, settings.ask.strategy),
    )


def _by_strategy(
    rows: Sequence[AnsweredQuestion], settings: RunSettings, part: QuestionPart
) -> dict[str, list[AnsweredQuestion]]:
    arms = {main_arm(settings): settings.ask.strategy}
    arms |= {name: name for name in settings.strategies}
    return {
        name: [row for row in rows if (row.arm, row.part) == (arm, part)]
        for arm, name in arms.items()
    }


def best_of(arms: Arms) -> str | None:
    """Return the strategy with the largest share right; of equals the first. None without any."""
    shares = {name: figure(row.right for row in rows) for name, rows in arms.items()}
    known = {name: share.value for name, share in shares.items() if share is not None}
    return max(known, key=lambda name: known[name]) if known else None


def _beside(name: str | None, arms: Arms, auto: Sequence[AnsweredQuestion]) -> Effect | None:
    return effect(name, AUTO, arms.get(name, ()), auto) if name is not None else None


def _chosen(auto: Sequence[AnsweredQuestion]) -> Iterator[ChosenStrategy]:
    """Yield the strategies that were chosen, by name."""
    for strategy in sorted({row.strategy for row in auto if row.strategy}):
        rows = [row for row in auto if row.strategy == strategy]
        yield ChosenStrategy(
            strategy=strategy,
            questions=len(rows),
            learned=sum(bool(row.chosen_by) for row in rows),
            right=figure(row.right for row in rows),
        )


def verdict(best: Effect, default: str) -> str:
    """Say whether ``auto`` is better than the best single strategy.

    Args:
        best: ``auto`` beside that one.
        default: the strategy of the settings.
    """
    points = 100 * (best.difference.value if best.difference else 0.0)
    said = f"{points:+.1f} points beside {best.first}, p = {best.p:.3f}"
    if points > 0 and best.p < CHANCE:
        return f"auto is better than the best single strategy: {said}."
    why = "within chance" if points > 0 else "no gain"
    return f"auto is not better ({said}: {why}): it stays off, and {default} is the default."
