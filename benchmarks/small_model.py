"""What a language model makes of strategies' prompts: valid actions, calls, tokens and seconds.

    python -m benchmarks.small_model [--strategy NAME,...] [--profile NAME] [--questions N]

First questions about those shared clips that the library (``HOMER_HOME``) has are asked with each
strategy, after what is missing of its memory was built. Right answers are counted as
``homer eval first`` judges them; the default is the small model in this process, which nobody
expects to reason.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agent.strategy import Strategy
from domain.asking import Question
from domain.errors import HomerError
from domain.trajectory import Acted, Guarded, ModelCalled, RunEvent
from evals.dataset import EvalQuestion, QuestionSet
from evals.datasets.specifications import read_set
from evals.judging import judge_conditions, judge_options
from flows.build import build_each
from flows.workspace import Workspace, open_workspace
from graphs.runner import Runner
from library.videos import all_videos
from strategies.registry import all_strategies, find_strategy


@dataclass
class Measured:
    """Counts over the questions of one strategy.

    ``valid`` are rounds whose first reply was an action that could be carried out; ``refused`` are
    replies that were sent back.
    """

    questions: int = 0
    right: int = 0
    rounds: int = 0
    valid: int = 0
    refused: int = 0
    seconds: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0
    calls: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)
    _attempt: int = 0

    def note(self, event: RunEvent) -> None:
        """Count an event."""
        if isinstance(event, ModelCalled):
            self.calls[event.purpose] += 1
            self.tokens_in += event.tokens_in
            self.tokens_out += event.tokens_out
        elif isinstance(event, Acted):
            self._attempt = event.attempt
            self.rounds += not event.attempt
        elif isinstance(event, Guarded):
            self.refused += not event.accepted
            self.valid += event.accepted and not self._attempt

    def line(self, name: str) -> str:
        """Return the counts in words, a question where that says more."""
        count = max(1, self.questions)
        purposes = ", ".join(f"{purpose} {calls}" for purpose, calls in sorted(self.calls.items()))
        return (
            f"{name}: {self.questions} questions, {self.right} right; valid actions "
            f"{self.valid} of {self.rounds} rounds, {self.refused} replies sent back; a question "
            f"{self.seconds / count:.0f} s, {self.calls.total() / count:.1f} calls ({purposes}), "
            f"{self.tokens_in / count:.0f} tokens in, {self.tokens_out / count:.0f} out"
            + "".join(f"; failed: {error}" for error in self.errors)
        )


def main() -> None:
    """Print a line for each question and for each strategy."""
    arguments = _arguments()
    names = arguments.strategy.split(",") if arguments.strategy else None
    chosen = [find_strategy(name) for name in names] if names else all_strategies()
    with open_workspace(arguments.profile) as workspace:
        asked = list(chosen_questions(workspace, arguments.questions))
        if not asked:
            raise SystemExit("none of the shared clips is in this library: homer ingest them first")
        for strategy in chosen:
            print(measure(workspace, strategy, asked).line(strategy.name), flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.small_model")
    parser.add_argument("--strategy", metavar="NAME,...", help="default: all")
    parser.add_argument("--profile", default="small", help="whose language model is asked")
    parser.add_argument("--questions", type=int, default=5, help="so many, of different clips")
    return parser.parse_args()


def chosen_questions(workspace: Workspace, most: int) -> Iterator[tuple[EvalQuestion, str]]:
    """Yield questions with the ids of their videos: one of each clip before any clip's second."""
    ids = {video.title: video.id for video in all_videos(workspace.store).items}
    order: list[tuple[int, EvalQuestion, str]] = []
    of_clip: Counter[str] = Counter()
    for question in read_set(QuestionSet.FIRST, Path()).questions:
        title = Path(question.video).stem
        if title in ids:
            order.append((of_clip[title], question, ids[title]))
            of_clip[title] += 1
    for _, question, video in sorted(order, key=lambda one: one[0])[:most]:
        yield question, video


def measure(
    workspace: Workspace, strategy: Strategy, asked: Sequence[tuple[EvalQuestion, str]]
) -> Measured:
    """Build what is missing, ask the questions one after the other, and count."""
    measured = Measured()
    for video in dict.fromkeys(video for _, video in asked):
        build_each(workspace, video, [strategy], lambda _: lambda *_: None)
    with Runner(workspace.store, workspace.toolbox) as runner:
        for question, video in asked:
            measured.questions += 1
            whole = Question(text=question.question, videos=(video,), options=question.options)
            try:
                made = runner.ask(whole, measured.note, strategy=strategy.name)
            except HomerError as error:
                measured.errors.append(f"{question.id}: {error}")
                continue
            judged = (
                judge_conditions(question.right, made.answer)
                if question.right
                else judge_options(question, made.answer)
            )
            right = bool(judged.right)
            measured.right += right
            measured.seconds += made.seconds
            verdict = "right" if right else "not right"
            print(
                f"  {strategy.name} {question.id}: {question.question} {made.answer.text!r} "
                f"({verdict}, {made.rounds} rounds, {made.seconds:.0f} s)",
                flush=True,
            )
    return measured


if __name__ == "__main__":
    main()
