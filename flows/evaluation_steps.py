"""The steps of an evaluation and their order, with or without Prefect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from flows.executors import DirectExecutor, Executor, Step
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


def _ingest(evaluation: Evaluation, video: str) -> None:
    """Ingest a video unless it is in memory."""
    evaluation.ingest(video)


def _answer(evaluation: Evaluation, slot: Slot) -> None:
    evaluation.answer(slot)


INGEST = Step(name="ingest", run_name="ingest {video}", call=_ingest)
ASK = Step(name="ask", run_name="ask {slot.question}", call=_answer)
Learn = Callable[[int], object]
"""Learns once a batch of this number is answered."""


def run_evaluation(evaluation: Evaluation, executor: Executor, learn: Learn) -> None:
    """Ingest every video, then answer batch after batch, and learn from each before the next.

    The evaluation stops early, with everything stored, once the cost limit is reached.
    """
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
            learn(batch)
            evaluation.learned(batch)


def run_directly(evaluation: Evaluation, workers: int) -> None:
    """Run an evaluation as plain calls, without a server; ``workers`` questions at a time."""

    def learn(_batch: int) -> None:
        for _ in learn_in_batches(evaluation.workspace):
            pass

    with DirectExecutor(workers) as executor:
        run_evaluation(evaluation, executor, learn)
