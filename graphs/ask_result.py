"""The result of a question: the answer, its cost, and both as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from domain.asking import Answer, level_of_confidence


@dataclass(frozen=True)
class AskResult:
    """An answer and its cost. ``tokens`` counts both ways, over all model calls."""

    trajectory_id: str
    answer: Answer
    rounds: int
    tokens: int
    seconds: float


class StoppedEarly(KeyboardInterrupt):
    """Ctrl-C was pressed; ``asked`` has the best answer so far, which says so itself."""

    def __init__(self, result: AskResult) -> None:
        super().__init__(
            "stopped; to search on from there:  homer ask --resume " + result.trajectory_id
        )
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
    return line | {
        "confidence": round(answer.confidence, 4),
        "confidence_level": level_of_confidence(answer.confidence),
        "standing": answer.standing,
        "not_in_memory": answer.not_in_memory,
        "declined": answer.declined,
        "citations": [
            {
                "start_s": c.span.start_ms / 1000,
                "end_s": c.span.end_ms / 1000,
                "text": c.text,
                "support": c.support,
            }
            for c in answer.citations
        ],
        "retrieved": [
            {
                "start_s": e.span.start_ms / 1000,
                "end_s": e.span.end_ms / 1000,
                "score": round(e.score, 4),
            }
            for e in answer.retrieved
        ],
        "rounds": result.rounds,
        "tokens": result.tokens,
        "seconds": round(result.seconds, 3),
        "trajectory": result.trajectory_id,
    }
