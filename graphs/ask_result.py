"""The result of a question: the answer, its cost, and the JSON of both.

The parts of that JSON are the API's too, whose answers have further fields.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from domain.asking import Answer, level_of_confidence
from domain.skills import StrategyChoice
from domain.time import in_seconds


@dataclass(frozen=True)
class AskResult:
    """An answer and its cost. ``tokens`` counts both ways, over all model calls.

    ``choice`` says how the strategy was chosen; None where it was named.
    """

    trajectory_id: str
    answer: Answer
    rounds: int
    tokens: int
    seconds: float
    choice: StrategyChoice | None = None


class StoppedEarly(KeyboardInterrupt):
    """Ctrl-C was pressed; ``asked`` has the best answer so far, which says so itself.

    ``shown`` is what a door shows of it.
    """

    shown: object = None

    def __init__(self, result: AskResult) -> None:
        super().__init__("stopped; to search on from there:  homer resume " + result.trajectory_id)
        self.asked = result


def answer_json(result: AskResult, question_id: str | int | None = None) -> dict[str, Any]:
    """Convert the answer to one JSON line; ``option`` only if the question had options."""
    answer = result.answer
    line: dict[str, Any] = {
        "id": result.trajectory_id if question_id is None else question_id,
        "answer": answer.text,
    }
    if answer.option is not None:
        line["option"] = answer.option
    citations = [
        in_seconds({"span": dict(one.span)}) | {"text": one.full_text, "support": one.support}
        for one in answer.citations
    ]
    retrieved = [
        in_seconds({"span": dict(one.span)}) | {"score": round(one.score, 4)}
        for one in answer.retrieved
    ]
    cost = {"rounds": result.rounds, "tokens": result.tokens, "seconds": round(result.seconds, 3)}
    found = {"citations": citations, "retrieved": retrieved}
    sure = {
        "confidence": round(answer.confidence, 4),
        "confidence_level": level_of_confidence(answer.confidence),
        "standing": answer.standing,
        "not_in_memory": answer.not_in_memory,
    }
    line |= sure | found | cost | {"trajectory": result.trajectory_id}
    return line | ({"choice": result.choice.model_dump(mode="json")} if result.choice else {})
