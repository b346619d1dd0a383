"""One question, answered by several strategies: a row each, and where they part."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import NonNegativeInt

from agent.strategy import AUTO
from domain.asking import Answer, Evidence, Question
from domain.base import Frozen
from views.trajectory import History


class StrategyRow(Frozen):
    """The answer of one strategy, and what it took.

    ``alone`` is the evidence that no other strategy found, in the order of finding. ``strategy``
    begins with ``auto: `` where it was chosen.
    """

    strategy: str
    trajectory: str
    answer: Answer | None
    rounds: NonNegativeInt
    searches: NonNegativeInt
    calls: NonNegativeInt
    tokens: NonNegativeInt
    cost_usd: float
    seconds: float
    alone: tuple[Evidence, ...]


class SideBySide(Frozen):
    """The rows in the order of asking. ``shared`` counts the evidence that all of them found."""

    question: Question
    rows: tuple[StrategyRow, ...]
    shared: NonNegativeInt

    @property
    def answers_agree(self) -> bool:
        """Check whether all gave the same answer."""
        given = {(row.answer.option or row.answer.text) if row.answer else "" for row in self.rows}
        return len(given) == 1


def side_by_side(histories: Sequence[History]) -> SideBySide:
    """Compare the trajectories of one question; there is at least one."""
    found = [history.evidence for history in histories]
    refs = [set(each) for each in found]
    return SideBySide(
        question=histories[0].question,
        rows=tuple(
            _row(history, own, set().union(*refs[:n], *refs[n + 1 :]))
            for n, (history, own) in enumerate(zip(histories, found, strict=True))
        ),
        shared=len(set.intersection(*refs)),
    )


def _row(history: History, own: dict[str, Evidence], others: set[str]) -> StrategyRow:
    return StrategyRow(
        strategy=f"{AUTO}: {history.machine}" if history.choice else history.machine,
        trajectory=history.id,
        answer=history.answer,
        rounds=len(history.rounds),
        searches=sum(round_.found is not None for round_ in history.rounds),
        calls=len(history.calls),
        tokens=history.tokens,
        cost_usd=history.cost_usd,
        seconds=history.seconds,
        alone=tuple(piece for ref, piece in own.items() if ref not in others),
    )
