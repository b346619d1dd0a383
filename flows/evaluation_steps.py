"""The steps of an evaluation and their order, with or without Prefect."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Protocol

from flows.ingest_steps import call_with_retries
from flows.learning import learn_in_batches
from flows.workspace import Workspace
from store.queries.evaluations import Slot


class Evaluation(Protocol):
    """A run over a data set; each step can be repeated, and finished work is not repeated."""

    name: str
    desk: Workspace

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


class EvalSteps(Protocol):
    """Runs the steps, each with its retries."""

    def ingest(self, evaluation: Evaluation, video: str) -> None:
        """Ingest a video unless it is in memory."""

    def answer(self, evaluation: Evaluation, slots: Sequence[Slot]) -> None:
        """Answer questions, several at a time."""

    def learn(self, evaluation: Evaluation, batch: int) -> None:
        """Learn from a batch."""


def run_evaluation(evaluation: Evaluation, steps: EvalSteps) -> None:
    """Ingest every video, then answer batch after batch, and learn from each before the next.

    The evaluation stops early, with everything stored, once the cost limit is reached.
    """
    for video in evaluation.videos():
        if evaluation.over():
            return
        steps.ingest(evaluation, video)
    for batch in evaluation.batches():
        steps.answer(evaluation, evaluation.pending(batch))
        if evaluation.over() and evaluation.pending(batch):
            return
        if evaluation.should_learn_from(batch):
            steps.learn(evaluation, batch)
            evaluation.learned(batch)


class PlainEvalSteps:
    """The steps as plain calls, with the retries and the order of the flow, without a server."""

    def __init__(self, workers: int) -> None:
        self._workers = workers

    def ingest(self, evaluation: Evaluation, video: str) -> None:
        """Run the step in this thread."""
        call_with_retries(evaluation.ingest, video)

    def answer(self, evaluation: Evaluation, slots: Sequence[Slot]) -> None:
        """Run the steps in threads; an error cancels those that have not started."""
        pool = ThreadPoolExecutor(self._workers, thread_name_prefix="ask")
        try:
            answers = [pool.submit(call_with_retries, evaluation.answer, slot) for slot in slots]
            for future in as_completed(answers):
                future.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def learn(self, evaluation: Evaluation, batch: int) -> None:  # noqa: ARG002
        """Run the step in this thread."""
        for _ in learn_in_batches(evaluation.desk):
            pass
