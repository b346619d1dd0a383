"""EgoLifeQA: a week of captions and questions about it, compared with the baselines."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from pydantic import Field

from domain.base import Frozen
from evals.asking import OnResult, ask_all, spans_of
from evals.bars import Bar
from evals.baseline import Baseline, WordBaseline
from evals.local import read_question_file
from evals.scores import Cells, Span, Summary, WeekScore, by_type, cells, judge, summary
from flows.clip_memory import build_due_windows
from flows.workspace import Workspace
from graphs.batch import BatchQuestion
from memory.captions import DAY_S, read_captions
from memory.import_captions import BATCH_CLIPS, Progress, import_track
from memory.writers import make_writers

# EgoLifeQA: four-choice questions about a week, each asked as of a moment of it.

CAPTIONS, QUESTIONS = "captions.jsonl.gz", "questions.json"
"""The files of the data set."""
TITLE = "egolife"

DAYS = 366
"""Limit of day numbers; more than a year is taken as an error."""


class DayTime(Frozen):
    """A second of a day; days count from 1."""

    day: int = Field(ge=1, le=DAYS)
    second: float = Field(ge=0, le=DAY_S)

    @property
    def video_s(self) -> float:
        """Return the seconds of video time."""
        return (self.day - 1) * DAY_S + self.second


class TargetSpan(Frozen):
    """A span in which the answer can be seen or heard."""

    day: int = Field(ge=1, le=DAYS)
    start: float = Field(ge=0, le=DAY_S)
    end_day: int = Field(ge=1, le=DAYS)
    end: float = Field(ge=0, le=DAY_S)

    @property
    def span(self) -> Span:
        """Return the span in seconds of video time."""
        start = DayTime(day=self.day, second=self.start)
        return start.video_s, DayTime(day=self.end_day, second=self.end).video_s


class EgoQuestion(Frozen):
    """One question; ``answer`` is the letter of the right option."""

    id: str
    type: str
    question: str
    options: tuple[str, ...] = Field(min_length=2, max_length=26)
    answer: str = Field(pattern=r"^[A-Z]$")
    as_of: DayTime
    targets: tuple[TargetSpan, ...]

    @property
    def target(self) -> Cells:
        """Return the grid cells of all targets."""
        return cells(target.span for target in self.targets)

    @property
    def right(self) -> int:
        """Return the index of the right option."""
        return ascii_uppercase.index(self.answer)

    def to_batch_question(self, video: str) -> BatchQuestion:
        """Return the question for a batch."""
        return BatchQuestion(
            id=self.id,
            video=video,
            question=self.question,
            options=self.options,
            as_of_s=self.as_of.video_s,
        )


class _EgoLifeFile(Frozen):
    source: str = ""
    questions: tuple[EgoQuestion, ...] = Field(min_length=1)


def read_ego_questions(path: Path) -> tuple[EgoQuestion, ...]:
    """Read the questions of a file: a JSON list, or an object with ``questions``.

    Raises:
        InputError: the file cannot be read as such.
    """
    return read_question_file(path, _EgoLifeFile, "EgoLife questions").questions


IMPORT_S, ASK_S = 15 * 60.0, 10 * 60.0
BETTER, POINTS = 1.5, 6.0
"""Bars: the factor over the baseline's top 3 and IoU, and the points of accuracy above it."""


@dataclass(frozen=True)
class Imported:
    """The imported week. ``seconds`` is None if any of it was there already."""

    video: str
    seconds: float | None


@dataclass(frozen=True)
class BaselineComparison:
    """Homer's figures and the baseline's, over the same questions."""

    homer: Summary
    plain: Summary


@dataclass(frozen=True)
class StrategySummary:
    """The figures of another strategy, and the seconds that all its answers and one took."""

    summary: Summary
    seconds: float
    slowest_s: float
    errors: int


@dataclass(frozen=True)
class EgoReport:
    """The results of the evaluation.

    ``strategies`` are those asked besides the profile's; ``words`` is the baseline of words.
    """

    imported: Imported
    questions: int
    errors: dict[str | int, str]
    ask_s: float
    baseline: str
    every: BaselineComparison
    types: dict[str, BaselineComparison]
    strategies: dict[str, StrategySummary] = field(default_factory=dict)
    words: Summary | None = None
    slowest_s: float = 0.0

    @property
    def bars(self) -> list[Bar]:
        """Return the bars to reach; the import counts only if this run made it."""
        homer, plain = self.every.homer, self.every.plain
        import_s = self.imported.seconds
        return [
            *(
                [Bar("import, seconds", import_s, IMPORT_S, most=True)]
                if import_s is not None
                else []
            ),
            Bar("asking, seconds", self.ask_s, ASK_S, most=True),
            Bar("questions answered", float(homer.questions), float(self.questions)),
            Bar("target in top 3, times the baseline", top_3_times(homer, plain), BETTER),
            Bar("temporal IoU, times the baseline", iou_times(homer, plain), BETTER),
            Bar("accuracy, points above", homer.accuracy.value - plain.accuracy.value, POINTS),
        ]


def top_3_times(made: Summary, plain: Summary) -> float:
    """Return how many times as often as the baseline a target is in the first three; 0: never."""
    return _times(made.found[3].value, plain.found[3].value)


def iou_times(made: Summary, plain: Summary) -> float:
    """Return how many times the baseline's temporal IoU is reached."""
    return _times(made.iou.value, plain.iou.value)


def _times(made: float, plain: float) -> float:
    return made / plain if plain else 0.0


def import_week(workspace: Workspace, captions: Path, progress: Progress) -> Imported:
    """Import the captions unless they are in memory; resumes an interrupted import.

    Raises:
        NotFound: there is no such file.
        InputError: it cannot be read.
    """
    started, fresh = time.monotonic(), _FreshProgress(progress)
    video = import_track(
        workspace.store,
        read_captions(captions),
        make_writers(workspace.toolbox, workspace.profile),
        workspace.toolbox,
        workspace.settings,
        build_windows=build_due_windows,
        title=TITLE,
        profile=workspace.profile.name,
        model_names={"text": workspace.profile.text_name, "writer": workspace.profile.writer},
        progress=fresh,
    )
    return Imported(video.id, time.monotonic() - started if fresh.whole else None)


class _FreshProgress:
    """Passes progress on, and notes whether it began with nothing done."""

    def __init__(self, progress: Progress) -> None:
        self._progress, self._steps, self.whole = progress, 0, False

    def __call__(self, done: int, total: int) -> None:
        self._steps += 1
        if self._steps == 1:
            self.whole = done <= BATCH_CLIPS
        self._progress(done, total)


def baseline_of(workspace: Workspace, imported: Imported, progress: Progress) -> Baseline:
    """Embed the imported week for the baseline; ``progress`` reports how many clips are done."""
    return Baseline.of(workspace.store, imported.video, workspace.toolbox.text, progress)


def evaluate(
    workspace: Workspace,
    imported: Imported,
    questions: Sequence[EgoQuestion],
    out: Path | None,
    on_result: OnResult,
    baseline: Baseline,
    strategies: Sequence[str] = (),
) -> EgoReport:
    """Ask all questions as of their times, and judge the answers and the baselines'.

    ``baseline`` is of the imported video. ``strategies`` are asked as well, one after the other.
    """
    batch_questions = [question.to_batch_question(imported.video) for question in questions]
    batch = ask_all(workspace, batch_questions, out, on_result)
    words = WordBaseline.of(workspace.store, imported.video)
    pairs = [
        (question, (_ours(question, batch.lines[question.id]), _plain(question, baseline)))
        for question in questions
        if question.id in batch.lines
    ]
    homer, plain = (by_type((q.type, pair[n]) for q, pair in pairs) for n in (0, 1))
    return EgoReport(
        imported=imported,
        questions=len(questions),
        errors=batch.errors,
        ask_s=batch.seconds,
        baseline=f"{workspace.toolbox.text.name}, one vector a clip",
        every=BaselineComparison(*(summary([pair[n] for _, pair in pairs]) for n in (0, 1))),
        types={kind: BaselineComparison(homer[kind], plain[kind]) for kind in homer},
        strategies={
            name: _by_strategy(workspace, questions, batch_questions, on_result, name)
            for name in strategies
        },
        words=summary([_plain(question, words) for question, _ in pairs]),
        slowest_s=batch.slowest_s,
    )


def _by_strategy(
    workspace: Workspace,
    questions: Sequence[EgoQuestion],
    batch_questions: Sequence[BatchQuestion],
    on_result: OnResult,
    name: str,
) -> StrategySummary:
    batch = ask_all(workspace, batch_questions, None, on_result, name)
    answered = [question for question in questions if question.id in batch.lines]
    scores = [_ours(question, batch.lines[question.id]) for question in answered]
    return StrategySummary(summary(scores), batch.seconds, batch.slowest_s, len(batch.errors))


def _ours(question: EgoQuestion, line: dict[str, Any]) -> WeekScore:
    right = line.get("option") == question.answer
    return judge(right, spans_of(line, "retrieved"), question.target)


def _plain(question: EgoQuestion, baseline: Baseline | WordBaseline) -> WeekScore:
    answer = baseline.answer(question.question, question.options, question.as_of.video_s)
    return judge(answer.option == question.right, answer.retrieved, question.target)


def questions_in(folder: Path, limit: int | None = None) -> tuple[EgoQuestion, ...]:
    """Return the questions of the data set in ``folder``; at most ``limit``, evenly spaced."""
    every = read_ego_questions(folder / QUESTIONS)
    count = min(limit or len(every), len(every))
    return tuple(every[index * len(every) // count] for index in range(count))
