"""Examples to train on: prompts with their right answers, and trajectories with their rewards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

from domain.memories import MemoryView
from domain.trajectory import Event
from evals.training.conversations import Message, completion_of, prompt_of
from evals.training.recipe import Recipe
from store.queries.training import JudgedRecord, judged_records
from store.queries.trajectories import StoredTrajectory, events_of, find_trajectory

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


@dataclass(frozen=True)
class RecordedExample:
    """A judged trajectory. ``answer`` is the letter of the right option; "" where it is unknown."""

    run: StoredTrajectory
    prompt: list[Message]
    completion: list[Message]
    reward: float
    answer: str

    @property
    def row(self) -> dict[str, Any]:
        """Return the row of the trajectory."""
        return {
            "prompt": self.prompt,
            "completion": self.completion,
            "reward": self.reward,
            "answer": self.answer,
            "trajectory": self.run.id,
            "profile": self.run.profile,
        }

    @property
    def prompt_row(self) -> dict[str, Any]:
        """Return the row of the prompt; ``view`` is the memory view as JSON."""
        view = self.run.view.model_dump_json()
        return {"prompt": self.prompt, "answer": self.answer, "view": view}


def recorded_examples(
    session: Session, strategy: str, recipe: Recipe, limit: int | None = None
) -> Iterator[RecordedExample]:
    """Yield the judged trajectories of a strategy, oldest first, at most ``limit``."""
    for record in judged_records(session, strategy)[:limit]:
        run = find_trajectory(session, record.trajectory)
        yield _example(run, events_of(session, run.id), record, recipe)


def _example(
    run: StoredTrajectory, events: list[Event], record: JudgedRecord, recipe: Recipe
) -> RecordedExample:
    return RecordedExample(
        run=run,
        prompt=prompt_of(run.question),
        completion=completion_of(events),
        reward=recipe.right if record.right else 0.0,
        answer=_right_letter(run, record),
    )


def _right_letter(run: StoredTrajectory, record: JudgedRecord) -> str:
    """Return the letter of the right option: the data set's, else of an answer judged right."""
    letters = ascii_uppercase[: len(run.question.options)]
    given = str((record.item or {}).get("answer") or "")
    if not given and record.right and run.answer is not None:
        given = run.answer.option or ""
    return given if given and given in letters and len(given) == 1 else ""


def prompt_rows(examples: list[RecordedExample]) -> list[dict[str, Any]]:
    """Return the prompts whose right answer is known, each once, in order.

    The same question over the same view is one prompt, however often it was asked.
    """
    rows = [example.prompt_row for example in examples if example.answer]
    distinct = {(str(row["prompt"]), row["view"]): row for row in rows}
    return list(distinct.values())


def view_of_row(view: str) -> MemoryView:
    """Return the memory view of a prompt's row."""
    return MemoryView.model_validate_json(view)
