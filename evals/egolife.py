"""A week of captions and questions about it, beside a plain baseline over the same memory."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evals.asking import Batch, Told, ask_all, spans_of
from evals.bars import Bar
from evals.baseline import Baseline
from evals.egolife_questions import QUESTIONS, TITLE, EgoQuestion, read_ego_questions
from evals.scores import Summary, WeekScore, by_type, judge, summary
from flows.workspace import Workspace
from memory.captions import read_captions
from memory.import_captions import BATCH, Progress, import_track
from memory.writers import make_writers

IMPORT_S, ASK_S = 15 * 60.0, 10 * 60.0
BETTER, POINTS = 1.5, 6.0
"""How many times the baseline's top 3 and IoU, and how many points more accuracy, are wanted."""


@dataclass(frozen=True)
class Imported:
    """The week in memory. ``seconds`` is None where it was there already, in whole or in part."""

    video: str
    seconds: float | None


@dataclass(frozen=True)
class BaselineComparison:
    """Homer beside the baseline, over the same questions."""

    homer: Summary
    plain: Summary


@dataclass(frozen=True)
class EgoReport:
    """What the evaluation found."""

    imported: Imported
    questions: int
    errors: dict[str | int, str]
    ask_s: float
    baseline: str
    every: BaselineComparison
    types: dict[str, BaselineComparison]

    @property
    def bars(self) -> list[Bar]:
        """What must be reached; the import is judged only where this run made it."""
        homer, plain = self.every.homer, self.every.plain
        took = self.imported.seconds
        return [
            *([Bar("import, seconds", took, IMPORT_S, most=True)] if took is not None else []),
            Bar("asking, seconds", self.ask_s, ASK_S, most=True),
            Bar("questions answered", float(homer.questions), float(self.questions)),
            Bar("target in top 3, times the baseline", _times(self.every, "found"), BETTER),
            Bar("temporal IoU, times the baseline", _times(self.every, "iou"), BETTER),
            Bar("accuracy, points above", homer.accuracy.value - plain.accuracy.value, POINTS),
        ]


def _times(compared: BaselineComparison, name: str) -> float:
    ours, plain = (
        one.found[3].value if name == "found" else one.iou.value
        for one in (compared.homer, compared.plain)
    )
    return ours / plain if plain else 0.0


def import_week(desk: Workspace, captions: Path, progress: Progress) -> Imported:
    """Import the captions, unless they are in memory; goes on where it was stopped.

    Raises:
        NotFound: there is no such file.
        InputError: it cannot be read.
    """
    began, first = time.monotonic(), _First(progress)
    video = import_track(
        desk.store,
        read_captions(captions),
        make_writers(desk.toolbox, desk.profile),
        desk.toolbox,
        desk.settings,
        title=TITLE,
        profile=desk.profile.name,
        models={"text": desk.profile.text, "writer": desk.profile.writer},
        progress=first,
    )
    return Imported(video.id, time.monotonic() - began if first.whole else None)


class _First:
    """Passes progress on, and knows whether it began with nothing done."""

    def __init__(self, progress: Progress) -> None:
        self._progress, self._steps, self.whole = progress, 0, False

    def __call__(self, done: int, total: int) -> None:
        self._steps += 1
        if self._steps == 1:
            self.whole = done <= BATCH
        self._progress(done, total)


def evaluate(
    desk: Workspace,
    imported: Imported,
    questions: Sequence[EgoQuestion],
    out: Path | None,
    told: Told,
    progress: Progress | None = None,
) -> EgoReport:
    """Ask all questions as of their times, judge the answers, and the baseline's beside them.

    ``progress`` hears how far the baseline has read the memory.
    """
    asked = [question.asked_of(imported.video) for question in questions]
    batch = ask_all(desk, asked, out, told)
    baseline = Baseline.of(desk.store, imported.video, desk.toolbox.text, progress)
    pairs = _judged(baseline, questions, batch)
    homer, plain = (by_type((q.type, pair[n]) for q, pair in pairs) for n in (0, 1))
    return EgoReport(
        imported=imported,
        questions=len(questions),
        errors=batch.errors,
        ask_s=batch.seconds,
        baseline=f"{desk.toolbox.text.name}, one vector a clip",
        every=BaselineComparison(*(summary([pair[n] for _, pair in pairs]) for n in (0, 1))),
        types={kind: BaselineComparison(homer[kind], plain[kind]) for kind in homer},
    )


def _judged(
    baseline: Baseline, questions: Sequence[EgoQuestion], batch: Batch
) -> list[tuple[EgoQuestion, tuple[WeekScore, WeekScore]]]:
    """The scores of both, of every question that was answered."""
    return [
        (question, (_ours(question, batch.lines[question.id]), _plain(question, baseline)))
        for question in questions
        if question.id in batch.lines
    ]


def _ours(question: EgoQuestion, line: dict[str, Any]) -> WeekScore:
    right = line.get("option") == question.answer
    return judge(right, spans_of(line, "retrieved"), question.target)


def _plain(question: EgoQuestion, baseline: Baseline) -> WeekScore:
    found = baseline.answer(question.question, question.options, question.as_of.video_s)
    return judge(found.option == question.right, found.retrieved, question.target)


def questions_in(folder: Path) -> tuple[EgoQuestion, ...]:
    """The questions of the data set in ``folder``."""
    return read_ego_questions(folder / QUESTIONS)
