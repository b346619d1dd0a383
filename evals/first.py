"""First questions, as a new user asks them: right, rightly declined, or wrong."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import Field, field_validator

from domain.asking import ConfidenceLevel, level_of_confidence
from domain.base import Frozen
from domain.memories import MemorySource
from domain.texts import first_number
from evals.asking import Batch, OnResult, ask_all, spans_of
from evals.bars import Bar
from evals.local import read_question_file
from evals.scores import Span
from flows.workspace import Workspace
from graphs.batch import BatchQuestion
from store.database import Store
from store.queries.clips import clips_of, memory_view
from store.queries.memories import memories_of_clips

# First questions, each with what counts as right, judged without a model.

_SETS = Path(__file__).parent / "sets"


class QuestionSet(StrEnum):
    """The sets of questions over the shared clips.

    What people ask first, what is seen, and everyday questions on the half of the clips that rules
    are worked out on, and on the half that is looked at once, when a change is done.
    """

    FIRST = "first"
    SEEN = "seen"
    WORK = "everyday_work"
    HELD = "everyday_held"

    @property
    def path(self) -> Path:
        """The set's JSON file."""
        return _SETS / f"{self}_questions.json"


class RightAnswer(Frozen):
    """What counts as right; all given conditions must hold.

    ``words``: regular expressions that the text must all match; ``number``: the least and the most
    for the first number in it. ``spans_s``: some citation overlaps one of them; ``top_s``: the
    first citation does; ``every_s``: each is overlapped by a citation. ``declined``: memory cannot
    hold the answer without a vision model, so that declining is right: alone, if it is the only
    condition, else beside an answer that meets the others.
    """

    words: tuple[str, ...] = ()
    number: tuple[int, int] | None = None
    spans_s: tuple[Span, ...] = ()
    top_s: tuple[Span, ...] = ()
    every_s: tuple[Span, ...] = ()
    option: str | None = Field(default=None, pattern=r"^[A-Z]$")
    declined: bool = False

    def met_by(self, line: dict[str, Any]) -> bool:
        """Check whether an answer line is right."""
        declines = bool(line.get("not_in_memory"))
        if declines or self == _ONLY_DECLINED:
            return self.declined and declines
        text = line["answer"]
        number = first_number(text) if self.number else None
        says = (
            (self.option is None or line.get("option") == self.option)
            and all(re.search(pattern, text, re.I | re.S) for pattern in self.words)
            and (not self.number or number in range(self.number[0], self.number[1] + 1))
        )
        return says and self._cites(spans_of(line, "citations"))

    def _cites(self, cited: list[Span]) -> bool:
        return (
            (not self.spans_s or touches(cited, self.spans_s))
            and (not self.top_s or touches(cited[:1], self.top_s))
            and all(touches(cited, [span]) for span in self.every_s)
        )


_ONLY_DECLINED = RightAnswer(declined=True)


def touches(
    spans: list[Span] | tuple[Span, ...], other_spans: list[Span] | tuple[Span, ...]
) -> bool:
    """Check whether any two spans overlap."""
    return any(a < d and c < b for a, b in spans for c, d in other_spans)


class FirstQuestion(Frozen):
    """A question about the clip ``video``, a file in the folder of clips or below it."""

    id: str
    video: str
    kind: str
    question: str
    options: tuple[str, ...] = Field(default=(), max_length=26)
    right: RightAnswer

    @field_validator("video")
    @classmethod
    def _below_the_folder(cls, name: str) -> str:
        path = PurePosixPath(name)
        if not path.name or path.is_absolute() or ".." in path.parts or str(path) != name:
            raise ValueError("a video is named by its path below the folder of clips")
        return name

    def to_batch_question(self, video: str) -> BatchQuestion:
        """Return the question for a batch, about the video with this id."""
        return BatchQuestion(id=self.id, video=video, question=self.question, options=self.options)


class _FirstFile(Frozen):
    about: str = ""
    questions: tuple[FirstQuestion, ...] = Field(min_length=1)


def read_first_questions(path: Path = QuestionSet.FIRST.path) -> tuple[FirstQuestion, ...]:
    """Read the questions of a JSON file.

    Raises:
        InputError: the file cannot be read as such.
    """
    return read_question_file(path, _FirstFile, "first questions").questions


RIGHT = {QuestionSet.WORK: 65.0, QuestionSet.HELD: 65.0}
"""Percent that must be right or rightly declined; of the other sets ``USUAL``."""
USUAL = 80.0
SURE = {QuestionSet.WORK: 5.0, QuestionSet.HELD: 5.0}
"""Percent that may be wrong with high confidence; of the other sets none."""
SURE_RIGHT = 85.0
"""Percent of the answers with high confidence that must be right."""
SPOKEN = {MemorySource.SAID, MemorySource.CAPTION, MemorySource.SUBTITLE}
"""Sources of lines of speech."""


@dataclass(frozen=True)
class FirstAnswer:
    """A judged answer. ``text`` is the answer; ``confidence`` is in [0, 1]."""

    question: FirstQuestion
    right: bool
    declined: bool
    confidence: float
    text: str
    top: tuple[float, float] | None

    @property
    def sure(self) -> bool:
        """Check whether the answer is wrong with high confidence."""
        return not self.right and level_of_confidence(self.confidence) is ConfidenceLevel.HIGH


@dataclass(frozen=True)
class FirstRow:
    """Counts over the answers of one kind, or all."""

    name: str
    questions: int
    right: int
    declined: int
    wrong: int
    sure: int


@dataclass(frozen=True)
class LevelRow:
    """How many answers, other than declined ones, had a level of confidence, and were right."""

    level: ConfidenceLevel
    answers: int
    right: int


@dataclass(frozen=True)
class SilentClips:
    """How many clips of memory have no line of speech, and how many of them have another line."""

    clips: int
    remembered: int


@dataclass(frozen=True)
class FirstReport:
    """The results of a set. ``absent``: missing clips, which were not asked about."""

    of: str
    answers: tuple[FirstAnswer, ...]
    kinds: tuple[FirstRow, ...]
    every: FirstRow
    silent: SilentClips
    absent: tuple[str, ...]
    errors: dict[str | int, str]
    seconds: float

    @property
    def bars(self) -> list[Bar]:
        """Return the bars to reach."""
        good = self.every.right + self.every.declined
        share = 100 * good / max(1, self.every.questions)
        sure = 100 * self.every.sure / max(1, self.every.questions)
        empty = self.silent.clips - self.silent.remembered
        high = next((row for row in self.levels if row.level is ConfidenceLevel.HIGH), None)
        known = {str(name): name for name in QuestionSet}.get(self.of, QuestionSet.FIRST)
        bars = [
            Bar("right or rightly declined, percent", share, RIGHT.get(known, USUAL)),
            Bar("wrong with high confidence, percent", sure, SURE.get(known, 0), most=True),
            Bar("silent clips without any line", empty, 0, most=True),
        ]
        if high:
            right = 100 * high.right / high.answers
            bars.append(Bar("right of high confidence, percent", right, SURE_RIGHT))
        return bars

    @property
    def levels(self) -> list[LevelRow]:
        """Return the answers by level of confidence; levels without any are left out."""
        given = [answer for answer in self.answers if not answer.declined]
        found = []
        for level in ConfidenceLevel:
            own = [a for a in given if level_of_confidence(a.confidence) is level]
            right = sum(answer.right for answer in own)
            found += [LevelRow(level, len(own), right)] if own else []
        return found


def evaluate(
    workspace: Workspace,
    of: str,
    questions: Sequence[FirstQuestion],
    ids: dict[str, str],
    absent: tuple[str, ...],
    out: Path | None,
    on_result: OnResult,
) -> FirstReport:
    """Ask the questions of a set about the clips in ``ids`` and judge the answers."""
    available = [question for question in questions if question.video in ids]
    batch = ask_all(
        workspace, [q.to_batch_question(ids[q.video]) for q in available], out, on_result
    )
    answers = tuple(judge(question, batch) for question in available)
    kinds = dict.fromkeys(answer.question.kind for answer in answers)
    return FirstReport(
        of=of,
        answers=answers,
        kinds=tuple(row(k, [a for a in answers if a.question.kind == k]) for k in kinds),
        every=row("all", answers),
        silent=silent_clips(workspace.store, [ids[video] for video in sorted(ids)]),
        absent=absent,
        errors=batch.errors,
        seconds=batch.seconds,
    )


def silent_clips(store: Store, videos: Sequence[str]) -> SilentClips:
    """Count the clips of videos that have no line of speech, and those of them with another."""
    sources = list[set[MemorySource]]()
    with store.begin(snapshot=True) as session:
        for scope in memory_view(session, videos).scopes:
            of_clip = {clip.index: set[MemorySource]() for clip in clips_of(session, scope.video)}
            for row in memories_of_clips(session, scope.video, [*of_clip], scope.last_clip):
                of_clip[row.memory.clip].add(row.memory.source)
            sources += of_clip.values()
    silent = [one for one in sources if not one & SPOKEN]
    return SilentClips(len(silent), sum(map(bool, silent)))


def judge(question: FirstQuestion, batch: Batch) -> FirstAnswer:
    """Judge one answer; without an answer line nothing is right."""
    line: dict[str, Any] | None = batch.lines.get(question.id)
    if line is None:
        return FirstAnswer(question, False, False, 0.0, "", None)
    tops = [(citation["start_s"], citation["end_s"]) for citation in line["citations"][:1]]
    return FirstAnswer(
        question=question,
        right=question.right.met_by(line),
        declined=bool(line.get("not_in_memory")),
        confidence=line["confidence"],
        text=line["answer"],
        top=tops[0] if tops else None,
    )


def row(name: str, answers: Sequence[FirstAnswer]) -> FirstRow:
    """Count answers by outcome."""
    good = [answer for answer in answers if answer.right]
    declined = sum(answer.declined for answer in good)
    return FirstRow(
        name=name,
        questions=len(answers),
        right=len(good) - declined,
        declined=declined,
        wrong=len(answers) - len(good),
        sure=sum(answer.sure for answer in answers),
    )
