"""Asking, resuming and forking, one question at a time."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from domain.asking import Answer, Question, level_of_confidence
from domain.trajectory import RunListener

if TYPE_CHECKING:
    from domain.trajectory import ForkEdit
    from models.toolbox import Toolbox
    from store.database import Store


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


def import_machine() -> None:
    """Import everything that a question needs, which is otherwise imported at first use."""
    import_module("langgraph.graph")
    for module in (
        "graphs.runner",
        "graphs.context_factory",
        "graphs.checkpoint_saver",
        "retrieval.retrievers",
    ):
        import_module(module)


def ask(
    store: Store,
    toolbox: Toolbox,
    question: Question,
    on_event: RunListener | None = None,
) -> AskResult:
    """Run the machine on ``question``.

    ``on_event`` gets every event as it happens, and the model's replies as they are written.

    Raises:
        NotFound: a video of the question is not in the library.
        InputError: nothing of a video has been watched yet, as of that time.
        ModelError: the profile's language model cannot be reached.
        StoppedEarly: Ctrl-C was pressed; it has the best answer so far.
    """
    from graphs.runner import Runner

    with Runner(store, toolbox) as runner:
        return runner.ask(question, on_event)


def resume(
    store: Store,
    toolbox: Toolbox,
    name: str,
    on_event: RunListener | None = None,
) -> AskResult:
    """Resume the question of the trajectory ``name``; see ``graphs.runner.Runner.resume``."""
    from graphs.runner import Runner

    with Runner(store, toolbox) as runner:
        return runner.resume(name, on_event)


def fork(
    store: Store,
    toolbox: Toolbox,
    name: str,
    number: int,
    edit: ForkEdit,
    on_event: RunListener | None = None,
) -> AskResult:
    """Fork a round of a trajectory as a new one; see ``graphs.runner.Runner.fork``."""
    from graphs.runner import Runner

    with Runner(store, toolbox) as runner:
        return runner.fork(name, number, edit, on_event)


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
