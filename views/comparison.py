"""A comparison of two trajectories: the first rounds in which actions or evidence differ."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from domain.asking import Action, Answer, Evidence, Question
from domain.base import Frozen
from views.trajectory import History, Round


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
    return Difference(
        a=a.id,
        b=b.id,
        same_question=a.question == b.question,
        same_answer=_answer_key(a.answer) == _answer_key(b.answer),
        action=_first_difference(a, b, ("subtask", "action")),
        evidence=_first_difference(a, b, ("seen",)),
        only_a=tuple(e for ref, e in seen_a.items() if ref not in seen_b),
        only_b=tuple(e for ref, e in seen_b.items() if ref not in seen_a),
        both=len(seen_a.keys() & seen_b.keys()),
        answer_a=a.answer,
        answer_b=b.answer,
        question_a=a.question,
        question_b=b.question,
    )


def _first_difference(a: History, b: History, fields: Sequence[str]) -> FirstDivergence | None:
    for left, right in zip_longest(map(_compared_round, a.rounds), map(_compared_round, b.rounds)):
        if (
            left is None
            or right is None
            or any(_compared(left, name) != _compared(right, name) for name in fields)
        ):
            return FirstDivergence(round=(left or right).round, a=left, b=right)
    return None


def _compared(round_: ComparedRound, field: str) -> object:
    """Return a field of a round as it is compared: an action without its reason."""
    if field == "action" and round_.action is not None:
        return round_.action.model_copy(update={"reason": ""})
    return getattr(round_, field)


def _compared_round(round_: Round) -> ComparedRound:
    seen = tuple(evidence.ref for evidence in round_.evidence)
    return ComparedRound(
        round=round_.number, subtask=round_.subtask, action=round_.action, seen=seen
    )


def _answer_key(answer: Answer | None) -> tuple[object, ...] | None:
    return None if answer is None else (answer.option, answer.text, answer.not_in_memory)
