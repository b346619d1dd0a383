"""The steps of an evaluation and their order, with or without Prefect."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Protocol

from domain.settings import WorkSettings
from flows.executors import Executor, Step, run_reported
from flows.learning import learn_in_batches
from flows.workspace import Workspace
from store.queries.evaluations import Slot


class Evaluation(Protocol):
    """A run over a data set; each step can be repeated, and finished work is not repeated."""

    name: str
    workspace: Workspace

    def videos(self) -> Sequence[str]:
        """Return the data set's videos that have questions, in order."""

    def ingest(self, video: str) -> None:
        """Ingest a video unless it is in memory, and plan its questions."""

    def batches(self) -> Sequence[int]:
        """Return the batches of questions, in order."""

    def pending(self, batch: int) -> Sequence[Slot]:
        """Return the questions of a batch that have no verdict yet, in all arms."""

    def answer(self, slot: Slot) -> None:
        """Answer a question and judge the answer, unless the cost limit is reached."""

    def over(self) -> bool:
        """Check whether the cost limit is reached."""

    def should_learn_from(self, batch: int) -> bool:
        """Check whether a batch is to be learned from and has not been yet."""

    def learned(self, batch: int) -> None:
        """Record that a batch was learned from."""


INGEST = Step(
    name="ingest",
    run_name="ingest {video}",
    call=lambda evaluation, video: evaluation.ingest(video),
)
ASK = Step(
    name="ask",
    run_name="ask {slot.question}",
    call=lambda evaluation, slot: evaluation.answer(slot),
)
LEARN = Step(
    name="learn",
    run_name="learn after batch {batch}",
    call=lambda workspace, batch: list(learn_in_batches(workspace)),  # noqa: ARG005 - its name
)


def run_evaluation(evaluation: Evaluation, workers: int, api: str | None = None) -> None:
    """Ingest every video, then answer batch after batch, and learn from each before the next.

    The evaluation stops early, with everything stored, once the cost limit is reached.

    Args:
        workers: how many questions are answered at a time.
        api: Prefect's server that shows it; None: none does.
    """
    run_reported(
        partial(_run_steps, evaluation),
        evaluation.workspace.store,
        api,
        flow="evaluate",
        run=evaluation.name,
        tag=f"eval:{evaluation.name}",
        settings=WorkSettings(workers=workers, pool="threads"),
    )


def _run_steps(evaluation: Evaluation, executor: Executor) -> None:
    for video in evaluation.videos():
        if evaluation.over():
            return
        executor.run(INGEST, evaluation=evaluation, video=video)
    for batch in evaluation.batches():
        slots = evaluation.pending(batch)
        executor.run_all(ASK, [{"evaluation": evaluation, "slot": slot} for slot in slots])
        if evaluation.over() and evaluation.pending(batch):
            return
        if evaluation.should_learn_from(batch):
            executor.run(LEARN, workspace=evaluation.workspace, batch=batch)
            evaluation.learned(batch)
