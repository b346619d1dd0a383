"""Trajectories compared: two of them round by round, and one question by several strategies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest

from pydantic import NonNegativeInt

from agent.strategy import AUTO
from domain.asking import Action, Answer, Evidence, Question
from domain.base import Frozen
from library.rounds import History


class ComparedRound(Frozen):
    """The action of one round, and the refs that each of its searches found, best first."""

    round: int
    subtask: str
    action: Action | None
    seen: tuple[str, ...]


class FirstDivergence(Frozen):
    """The first round in which the two differ; None for a trajectory that had ended."""

    round: int
    a: ComparedRound | None
    b: ComparedRound | None


class Difference(Frozen):
    """How two trajectories differ.

    ``action`` is the first round with another action, ``evidence`` the first with other evidence;
    None if there is none. ``only_a`` and ``only_b`` are the evidence that one of them found in the
    whole run, in the order of finding; ``both`` counts what both found.
    """

    a: str
    b: str
    same_question: bool
    same_answer: bool
    action: FirstDivergence | None
    evidence: FirstDivergence | None
    only_a: tuple[Evidence, ...]
    only_b: tuple[Evidence, ...]
    both: int
    answer_a: Answer | None
    answer_b: Answer | None
    question_a: Question
    question_b: Question

    @property
    def same(self) -> bool:
        """Check whether actions, evidence and answers are the same."""
        return self.action is None and self.evidence is None and self.same_answer


def compare_trajectories(a: History, b: History) -> Difference:
    """Return the differences of ``a`` and ``b``; the reasons of actions are not compared."""
    seen_a, seen_b = a.evidence, b.evidence
    one, other = a.row, b.row
    return Difference(
        a=one.id,
        b=other.id,
        same_question=one.question == other.question,
        same_answer=_answer_key(one.answer) == _answer_key(other.answer),
        action=_first_difference(a, b, ("subtask", "action")),
        evidence=_first_difference(a, b, ("seen",)),
        only_a=tuple(e for ref, e in seen_a.items() if ref not in seen_b),
        only_b=tuple(e for ref, e in seen_b.items() if ref not in seen_a),
        both=len(seen_a.keys() & seen_b.keys()),
        answer_a=one.answer,
        answer_b=other.answer,
        question_a=one.question,
        question_b=other.question,
    )


def _first_difference(a: History, b: History, fields: Sequence[str]) -> FirstDivergence | None:
    left, right = (
        [
            ComparedRound(
                round=one.number,
                subtask=one.subtask,
                action=one.action,
                seen=tuple(evidence.ref for evidence in one.evidence),
            )
            for one in history.rounds
        ]
        for history in (a, b)
    )
    for one, other in zip_longest(left, right):
        if (
            one is None
            or other is None
            or any(_compared(one, name) != _compared(other, name) for name in fields)
        ):
            return FirstDivergence(round=(one or other).round, a=one, b=other)
    return None


def _compared(round_: ComparedRound, field: str) -> object:
    """Return a field of a round as it is compared: an action without its reason."""
    if field == "action" and round_.action is not None:
        return round_.action.model_copy(update={"reason": ""})
    return getattr(round_, field)


def _answer_key(answer: Answer | None) -> tuple[object, ...] | None:
    return None if answer is None else (answer.option, answer.text, answer.not_in_memory)


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
    """The rows in the order of asking. ``shared`` counts the evidence that all of them found.

    ``titles`` are those of the videos by id, ``failed`` why the others failed.
    """

    question: Question
    rows: tuple[StrategyRow, ...]
    shared: NonNegativeInt
    titles: Mapping[str, str] = {}
    failed: Mapping[str, str] = {}

    @property
    def answers_agree(self) -> bool:
        """Check whether all gave the same answer."""
        given = {(row.answer.option or row.answer.text) if row.answer else "" for row in self.rows}
        return len(given) == 1


def side_by_side(histories: Sequence[History]) -> SideBySide:
    """Compare the trajectories of one question; there is at least one."""
    found = [history.evidence for history in histories]
    rows = []
    for place, (history, own) in enumerate(zip(histories, found, strict=True)):
        row = history.row
        others = {ref for n, each in enumerate(found) if n != place for ref in each}
        one = StrategyRow(
            strategy=f"{AUTO}: {row.machine}" if history.choice else row.machine,
            trajectory=row.id,
            answer=row.answer,
            rounds=len(history.rounds),
            searches=sum(round_.found is not None for round_ in history.rounds),
            calls=len(history.calls),
            tokens=row.tokens,
            cost_usd=history.cost_usd,
            seconds=row.seconds,
            alone=tuple(piece for ref, piece in own.items() if ref not in others),
        )
        rows.append(one)
    shared = set.intersection(*map(set, found))
    return SideBySide(question=histories[0].row.question, rows=tuple(rows), shared=len(shared))
