"""Questions about real clips: is the right moment cited and the right option chosen?"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import ascii_uppercase
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel, Field, ValidationError, field_validator

from domain.base import Frozen, first_problem
from domain.errors import InputError
from domain.ingesting import Watched
from evals.asking import Batch, OnResult, ask_all, spans_of
from evals.bars import Bar
from evals.conduct import Conduct, conduct
from evals.sampling import mean, median
from evals.scores import Span
from flows.ingest_files import watch_files
from flows.watching import Listener
from flows.workspace import Workspace
from graphs.batch import BatchQuestion

# Read a JSON file of questions.

Document = TypeVar("Document", bound=BaseModel)


def read_question_file(path: Path, schema: type[Document], kind: str) -> Document:
    """Read a file of questions; a list is taken as the document's ``questions``.

    Args:
        schema: the document's form.
        kind: what the file should hold, for the error.

    Raises:
        InputError: the file cannot be read, or does not have this form.
    """
    try:
        parsed = json.loads(path.read_text(encoding="utf-8"))
        return schema.model_validate({"questions": parsed} if isinstance(parsed, list) else parsed)
    except (OSError, ValueError, RecursionError) as error:
        problem = first_problem(error) if isinstance(error, ValidationError) else error
        raise InputError(f"{path} holds no {kind}: {problem}") from error


# Questions about real clips, with the spans in which the answer is said or shown.


class MediaQuestion(Frozen):
    """A question about the clip ``video``, a file in the folder of the questions."""

    id: str
    video: str
    question: str
    answer: str
    spans_s: tuple[Span, ...] = Field(min_length=1)
    source: str = ""
    options: tuple[str, ...] = Field(default=(), max_length=26)
    answer_option: str | None = Field(default=None, pattern=r"^[A-Z]$")

    @field_validator("video")
    @classmethod
    def _file_name_only(cls, name: str) -> str:
        if Path(name).name != name or name in ("", ".", ".."):
            raise ValueError("a video is named by its file name alone")
        return name

    @property
    def chance(self) -> float:
        """Return the share right by guessing; 0 without options."""
        return 1 / len(self.options) if self.options else 0.0

    def is_right(self, option: str | None) -> bool:
        """Check whether this letter is the right option's."""
        return option is not None and option == self.right

    @property
    def right(self) -> str:
        """Return the letter of the right option."""
        if self.answer_option or self.answer not in self.options:
            return self.answer_option or ""
        return ascii_uppercase[self.options.index(self.answer)]

    def is_cited(self, span: Span) -> bool:
        """Check whether a cited span overlaps a marked one."""
        return any(start < span[1] and span[0] < end for start, end in self.spans_s)

    def to_batch_question(self, video: str) -> BatchQuestion:
        """Return the question for a batch, about the video with this id."""
        return BatchQuestion(id=self.id, video=video, question=self.question, options=self.options)


class _MediaFile(Frozen):
    about: str = ""
    questions: tuple[MediaQuestion, ...] = Field(min_length=1)


def read_media_questions(path: Path) -> tuple[MediaQuestion, ...]:
    """Read the questions of a JSON file with ``questions``.

    Raises:
        InputError: the file cannot be read as such.
    """
    return read_question_file(path, _MediaFile, "questions about media").questions


CITED = 80.0
"""Percent of questions whose first citation must overlap a marked span."""
ABOVE_CHANCE = 25.0
"""Points of accuracy above chance."""


@dataclass(frozen=True)
class JudgedAnswer:
    """One answer. ``right`` is None without options; ``top`` is the first cited span, if any."""

    question: MediaQuestion
    cited: bool
    right: bool | None
    option: str | None
    top: tuple[float, float] | None
    rounds: int
    seconds: float


@dataclass(frozen=True)
class LocalRow:
    """Figures over the answers about one video, or all; shares in percent, None of nothing."""

    name: str
    questions: int
    cited: float
    choices: int
    accuracy: float | None
    chance: float | None
    rounds: float
    seconds: float


@dataclass(frozen=True)
class LocalReport:
    """The results. ``absent``: missing files, which were not asked about."""

    answers: tuple[JudgedAnswer, ...]
    videos: tuple[LocalRow, ...]
    every: LocalRow
    absent: tuple[str, ...]
    errors: dict[str | int, str]
    seconds: float
    conduct: Conduct

    @property
    def bars(self) -> list[Bar]:
        """Return the bars to reach."""
        above = (self.every.accuracy or 0.0) - (self.every.chance or 0.0)
        return [
            Bar("top citation overlaps the marked span, percent", self.every.cited, CITED),
            Bar("right options, points above chance", above, ABOVE_CHANCE),
            *self.conduct.bars(len(self.answers)),
        ]


class OfVideo(Protocol):
    """A question about a clip."""

    @property
    def video(self) -> str:
        """Return the clip's file name."""


Asked = TypeVar("Asked", bound=OfVideo)


def split_by_presence(
    questions: Iterable[Asked], folder: Path
) -> tuple[list[Asked], tuple[str, ...]]:
    """Return the questions whose video is in ``folder``, and the missing videos."""
    all_questions = list(questions)
    absent = {q.video for q in all_questions if not (folder / q.video).is_file()}
    return [q for q in all_questions if q.video not in absent], tuple(sorted(absent))


def watch_all(
    workspace: Workspace, questions: Sequence[OfVideo], folder: Path, listener: Listener
) -> tuple[dict[str, str], list[Watched]]:
    """Watch the clips that are asked about, unless they are in memory.

    Returns:
        The id of each clip that was watched completely, by file name, and the other outcomes.
    """
    names = sorted({question.video for question in questions})
    outcomes = watch_files(workspace, [folder / name for name in names], listener, direct=True)
    ids, failed = {}, []
    for name, outcome in zip(names, outcomes, strict=True):
        if outcome.video and outcome.exit_code == 0:
            ids[name] = outcome.video
        else:
            failed.append(outcome)
    return ids, failed


def evaluate(
    workspace: Workspace,
    questions: Sequence[MediaQuestion],
    ids: dict[str, str],
    absent: tuple[str, ...],
    out: Path | None,
    on_result: OnResult,
) -> LocalReport:
    """Ask the questions about the clips in ``ids`` and judge the answers.

    A question without an answer counts as wrong and uncited.
    """
    available = [question for question in questions if question.video in ids]
    batch = ask_all(
        workspace, [q.to_batch_question(ids[q.video]) for q in available], out, on_result
    )
    answers = tuple(judge(question, batch) for question in available)
    videos: dict[str, list[JudgedAnswer]] = {}
    for answer in answers:
        videos.setdefault(answer.question.video, []).append(answer)
    rows = [row(name, videos[name]) for name in sorted(videos)]
    return LocalReport(
        answers=answers,
        videos=tuple(rows),
        every=row("all", answers),
        absent=absent,
        errors=batch.errors,
        seconds=batch.seconds,
        conduct=conduct(
            workspace.store,
            [line["trajectory"] for line in batch.lines.values()],
            workspace.settings.ask.retries,
        ),
    )


def judge(question: MediaQuestion, batch: Batch) -> JudgedAnswer:
    """Judge one answer; without an answer line nothing is right."""
    line: dict[str, Any] = batch.lines.get(question.id, {"citations": [], "rounds": 0})
    top = next(iter(spans_of(line, "citations")), None)
    option = line.get("option")
    return JudgedAnswer(
        question=question,
        cited=top is not None and question.is_cited(top),
        right=question.is_right(option) if question.options else None,
        option=option,
        top=top,
        rounds=line["rounds"],
        seconds=line.get("seconds", 0.0),
    )


def row(name: str, answers: Sequence[JudgedAnswer]) -> LocalRow:
    """Summarise answers."""
    choices = [answer for answer in answers if answer.right is not None]
    return LocalRow(
        name=name,
        questions=len(answers),
        cited=100 * mean([answer.cited for answer in answers]),
        choices=len(choices),
        accuracy=100 * mean([bool(choice.right) for choice in choices]) if choices else None,
        chance=100 * mean([choice.question.chance for choice in choices]) if choices else None,
        rounds=median([answer.rounds for answer in answers]),
        seconds=median([answer.seconds for answer in answers]),
    )
