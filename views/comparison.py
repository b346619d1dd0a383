"""Two trajectories side by side: where they part, in what was done and in what was seen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest

from domain.asking import Action, Answer, Evidence
from domain.base import Frozen
from views.trajectory import History, Round


class ComparedRound(Frozen):
    """What one round did and which refs each of its searches saw, best first."""

    round: int
    subtask: str
    action: Action | None
    seen: tuple[str, ...]


class Parting(Frozen):
    """The first round in which the two differ; None on a side that had ended."""

    round: int
    a: ComparedRound | None
    b: ComparedRound | None


class Difference(Frozen):
    """Where two trajectories part.

    ``action`` is the first round that did another thing, ``evidence`` the first that saw other
    things; None where no round does. ``only_a`` and ``only_b`` were seen by one of them, over the
    whole run, in the order of first sight; ``both`` is how many things both saw.
    """

    a: str
    b: str
    same_question: bool
    same_answer: bool
    action: Parting | None
    evidence: Parting | None
    only_a: tuple[Evidence, ...]
    only_b: tuple[Evidence, ...]
    both: int
    answer_a: Answer | None
    answer_b: Answer | None

    @property
    def same(self) -> bool:
        """Whether both did and saw the same, and came to the same answer."""
        return self.action is None and self.evidence is None and self.same_answer


def compare(a: History, b: History) -> Difference:
    """Where ``a`` and ``b`` part; why an action was chosen is not compared."""
    seen_a, seen_b = _seen(a), _seen(b)
    return Difference(
        a=a.id,
        b=b.id,
        same_question=a.question == b.question,
        same_answer=_said(a.answer) == _said(b.answer),
        action=_parting(a, b, ("subtask", "action")),
        evidence=_parting(a, b, ("seen",)),
        only_a=tuple(e for ref, e in seen_a.items() if ref not in seen_b),
        only_b=tuple(e for ref, e in seen_b.items() if ref not in seen_a),
        both=len(seen_a.keys() & seen_b.keys()),
        answer_a=a.answer,
        answer_b=b.answer,
    )


def _parting(a: History, b: History, fields: Sequence[str]) -> Parting | None:
    for one, other in zip_longest(map(_step, a.rounds), map(_step, b.rounds)):
        if one is None or other is None or any(_of(one, f) != _of(other, f) for f in fields):
            return Parting(round=(one or other).round, a=one, b=other)
    return None


def _of(step: ComparedRound, field: str) -> object:
    """A field of a step as it is compared: the reason of an action is no part of what was done."""
    if field == "action" and step.action is not None:
        return step.action.model_copy(update={"reason": ""})
    return getattr(step, field)


def _step(shown: Round) -> ComparedRound:
    seen = tuple(e.ref for found in shown.searches for e in found.evidence)
    return ComparedRound(round=shown.number, subtask=shown.subtask, action=shown.action, seen=seen)


def _seen(history: History) -> dict[str, Evidence]:
    """Everything that the rounds found, by ref."""
    found: Iterable[Evidence] = (
        e for shown in history.rounds for found in shown.searches for e in found.evidence
    )
    once: dict[str, Evidence] = {}
    for evidence in found:
        once.setdefault(evidence.ref, evidence)
    return once


def _said(answer: Answer | None) -> tuple[object, ...] | None:
    return None if answer is None else (answer.option, answer.text, answer.not_in_memory)
