"""Evaluations with a target: a data set is asked without skills, and its answers are measured.

Each is a run of ``evals.running`` under a new name, so that everything is asked again. What is
measured is computed from its results.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from domain.asking import Answer, ConfidenceLevel, level_of_confidence
from domain.errors import InputError
from domain.evaluation_options import Protocol
from evals.dataset import Dataset, EvalQuestion
from evals.plan import checked_name, plan
from evals.running import EvalListener, run
from evals.tables import Findings, MeanInterval, Measure, Measured, Row, RunOutcome
from flows.workspace import Workspace
from graphs.ask_result import AskResult, answer_json
from graphs.concurrent import answered_ids
from store.files import make_private, open_private
from store.queries.evaluations import Result, run_results


@dataclass(frozen=True)
class Answered:
    """A question of a run in one arm, and its answer; without one nothing is right."""

    question: EvalQuestion
    result: Result
    answer: Answer | None

    @property
    def right(self) -> bool:
        return self.result.verdict is not None and bool(self.result.verdict.right)

    @property
    def cites_it(self) -> bool:
        """Check whether the first citation holds marked evidence."""
        return self.result.verdict is not None and bool(self.result.verdict.top)

    @property
    def declined(self) -> bool:
        """Check whether it says that memory does not hold the answer."""
        return self.answer is not None and self.answer.not_in_memory

    @property
    def level(self) -> ConfidenceLevel | None:
        return level_of_confidence(self.answer.confidence) if self.answer else None

    @property
    def first_cited(self) -> str:
        """Return the span that is cited first, in words."""
        if self.answer is None or not self.answer.citations:
            return "nothing"
        span = self.answer.citations[0].span
        return f"{span.start_ms / 1000:g}-{span.end_ms / 1000:g} s"


@dataclass(frozen=True)
class Asked:
    """A data set that was asked: the answers of all arms, by arm; there is that of ``ran.main``."""

    workspace: Workspace
    ran: RunOutcome
    arms: Mapping[str, Sequence[Answered]]

    @property
    def answers(self) -> Sequence[Answered]:
        """Return the answers of the profile's own strategy."""
        return self.arms[self.ran.main]

    def measure(self, name: str, ours: object, plain: object = None) -> Iterator[Measure]:
        """Yield a figure as one of those that data sets are compared by, if it is known."""
        if isinstance(ours, MeanInterval):
            beside = plain if isinstance(plain, MeanInterval) else None
            yield Measure(self.ran.run.settings.dataset, name, ours, beside)


def measure(
    workspace: Workspace,
    dataset: Dataset,
    listener: EvalListener,
    find: Callable[[Asked], Findings],
    out: Path | None = None,
    *,
    strategies: Sequence[str] = (),
    baseline: bool = False,
) -> Measured:
    """Ask the questions of a data set in a new run, and measure the answers.

    Args:
        find: what is measured.
        out: overwritten with the answers of the profile's strategy, as JSON lines.
        strategies: asked as well as the profile's.
        baseline: answer multiple choice the plain way as well.

    Raises:
        InputError: no question is about a video that is there, or ``out`` is not a file of answers.
    """
    if out is not None:
        if out.is_dir():
            raise InputError(f"{out} is a folder: name a file to write")
        answered_ids(out)
    planned = plan(
        dataset,
        workspace.profile,
        Protocol.NONE,
        baseline=baseline,
        strategies=strategies,
        skills=False,
    )
    words = re.sub(r"[^A-Za-z0-9._+-]+", "-", dataset.name).strip("-._+")[:60]
    name = checked_name(f"{words or 'questions'}-{datetime.now():%Y%m%d-%H%M%S}")
    ran = run(workspace, planned, listener, name=name, direct=True)
    with workspace.store.begin() as session:
        results = run_results(session, name)
    arms: dict[str, list[Answered]] = {ran.main: []}
    for result in results:
        answer = Answer.model_validate(result.answer) if result.answer else None
        question = EvalQuestion.model_validate(result.slot.item)
        arms.setdefault(result.slot.arm, []).append(Answered(question, result, answer))
    if out is not None:
        if not out.parent.is_dir():
            make_private(out.parent)
        with open_private(out) as file:
            for one in arms[ran.main]:
                if (made := one.answer) is not None:
                    took, of = one.result.took, one.result.trajectory or ""
                    asked = AskResult(of, made, took.rounds, took.tokens, took.seconds)
                    line = answer_json(asked, one.question.id)
                    file.write(json.dumps(line, ensure_ascii=False) + "\n")
    return Measured(
        **dict(find(Asked(workspace, ran, arms))),
        dataset=dataset.name,
        run=name,
        questions=len(arms[ran.main]),
        absent=planned.absent,
        left_out=ran.left_out,
        seconds=ran.asking_s,
    )


def percent(row: Row, name: str) -> float:
    """Return a share of a row in percent; 0 of nothing."""
    value = row.figures[name]
    return 100 * value.value if isinstance(value, MeanInterval) else 0.0


def by_type(asked: Asked) -> Findings:
    """Measure all types of questions beside the baseline."""
    return Findings(
        measures=tuple(
            measured
            for one in asked.ran.beside
            for measured in asked.measure(
                f"right option, {one.type}", one.effect.after, one.effect.before
            )
        )
    )
