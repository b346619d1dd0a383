"""The order of the steps of an evaluation, whoever runs them."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Protocol

from flows.ingest_steps import patiently
from flows.learning import learn_all
from flows.workspace import Workspace
from store.queries.evaluations import Slot


class Evaluation(Protocol):
    """A run over a data set; each step is safe to repeat, and what is done is not done again."""

    name: str
    desk: Workspace

    def videos(self) -> Sequence[str]:
        """The data set's videos that are asked about, in order."""

    def ingest(self, video: str) -> None:
        """See that a video is in memory, and plan its questions."""

    def batches(self) -> Sequence[int]:
        """The batches of questions, in order."""

    def pending(self, batch: int) -> Sequence[Slot]:
        """The questions of a batch that have no verdict yet, in all arms."""

    def answer(self, slot: Slot) -> None:
        """Have a question answered and judged, unless the money is spent."""

    def over(self) -> bool:
        """Whether the money is spent."""

    def to_learn(self, batch: int) -> bool:
        """Whether a batch is to be learned from, and was not yet."""

    def learned(self, batch: int) -> None:
        """Note that a batch was learned from."""


class EvalSteps(Protocol):
    """Runs the steps, each with its retries."""

    def ingest(self, work: Evaluation, video: str) -> None:
        """See that a video is in memory."""

    def answer(self, work: Evaluation, slots: Sequence[Slot]) -> None:
        """Have questions answered, several at a time."""

    def learn(self, work: Evaluation, batch: int) -> None:
        """Learn from a batch."""


def evaluate(work: Evaluation, steps: EvalSteps) -> None:
    """Every video, then batch after batch, each learned from before the next.

    Ends early, with everything on record, once the money is spent.
    """
    for video in work.videos():
        if work.over():
            return
        steps.ingest(work, video)
    for batch in work.batches():
        steps.answer(work, work.pending(batch))
        if work.over() and work.pending(batch):
            return
        if work.to_learn(batch):
            steps.learn(work, batch)
            work.learned(batch)


class PlainEvalSteps:
    """Plain calls, with the retries and the order of the flow, and no server."""

    def __init__(self, workers: int) -> None:
        self._workers = workers

    def ingest(self, work: Evaluation, video: str) -> None:
        """Here and now."""
        patiently(work.ingest, video)

    def answer(self, work: Evaluation, slots: Sequence[Slot]) -> None:
        """In threads; an error of one ends the rest, once those that began are through."""
        pool = ThreadPoolExecutor(self._workers, thread_name_prefix="ask")
        try:
            for one in as_completed([pool.submit(patiently, work.answer, s) for s in slots]):
                one.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def learn(self, work: Evaluation, batch: int) -> None:  # noqa: ARG002
        """Here and now."""
        for _ in learn_all(work.desk):
            pass
