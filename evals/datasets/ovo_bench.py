"""OVO-Bench: questions asked while a video runs, about the past, the present and the future.

Each is asked as of its ``realtime``. The forward tasks ask the same thing at several times: how
often something was done so far (REC), whether a step is being done (SSR), whether enough was seen
to answer (CRR). Each of these times is a question here, as in the authors' scores.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic import Field

from domain.errors import InputError
from evals.dataset import Counts, Dataset, DatasetSource, EvalQuestion, EvalVideo
from evals.datasets.files import (
    Published,
    Seconds,
    Words,
    all_checked,
    dataset,
    file_in,
    letter,
    ms,
    question,
    records,
    root_of,
    video,
    video_in,
)

FILE = "ovo_bench_new.json"
BACKWARD = {"EPM": 297, "ASI": 148, "HLD": 186}
REALTIME = {"OCR": 149, "ACR": 109, "ATR": 116, "STU": 178, "FPD": 101, "OJR": 184}
FORWARD = {"REC": 698, "SSR": 629, "CRR": 240}
"""Questions of each task; for the forward tasks, each of their times."""
MODES = {
    **dict.fromkeys(BACKWARD, "backward"),
    **dict.fromkeys(REALTIME, "realtime"),
    **dict.fromkeys(FORWARD, "forward"),
}
YES_NO = ("Yes", "No")
SUBJECTS = {"REC": "activity", "SSR": "step", "CRR": "question"}
"""The field with the subject of a forward task."""


class _OvoBenchTime(Published):
    realtime: Seconds
    count: int | None = None
    type: int | None = Field(default=None, ge=0, le=1)
    step: str = ""


class _OvoBenchRow(Published):
    id: Words
    task: str
    video: str
    question: str | None = None
    options: tuple[Words, ...] | None = None
    gt: int | None = Field(default=None, ge=0, le=25)
    realtime: Seconds | None = None
    activity: str = ""
    test_info: tuple[_OvoBenchTime, ...] = ()


def read(folder: Path) -> Dataset:
    """Read the questions of ``ovo_bench_new.json``.

    Raises:
        InputError: it is missing or malformed.
    """
    path = file_in(folder, FILE, f"data/{FILE}")
    rows = list(all_checked(_OvoBenchRow, records(path)))
    videos = [_video(root_of(folder), *row) for row in rows]
    questions = [item for place, row in rows for item in _questions(place, row)]
    return dataset("ovo-bench", str(path), videos, questions)


def _video(root: Path, place: str, row: _OvoBenchRow) -> EvalVideo:
    file = video_in(root, row.video, place, "src_videos", "data/src_videos", "videos", ".")
    return video(place, name=row.video, file=file)


def _questions(place: str, row: _OvoBenchRow) -> Iterator[EvalQuestion]:
    mode = MODES.get(row.task)
    if mode is None:
        raise InputError(f"{place}: task: {row.task!r} is none of {', '.join(MODES)}")
    if mode != "forward":
        yield _choice(place, row, mode)
        return
    for number, moment in enumerate(row.test_info):
        yield _forward(f"{place}, test_info {number}", row, number, moment)


def _choice(place: str, row: _OvoBenchRow, mode: str) -> EvalQuestion:
    if row.gt is None or row.realtime is None or not row.options:
        raise InputError(f"{place}: a question of {row.task} needs options, gt and realtime")
    return question(
        place,
        id=row.id,
        video=row.video,
        question=row.question or "",
        options=row.options,
        answer=letter(row.gt),
        types=(mode, row.task),
        as_of_ms=ms(row.realtime),
    )


def _forward(place: str, row: _OvoBenchRow, number: int, moment: _OvoBenchTime) -> EvalQuestion:
    is_count = row.task == "REC"
    answer = moment.count if is_count else moment.type
    if answer is None:
        raise InputError(f"{place}: {'count' if is_count else 'type'}: it is not there")
    return question(
        place,
        id=f"{row.id}_{number}",
        video=row.video,
        question=_wording(place, row, moment),
        options=() if is_count else YES_NO,
        answer=str(answer) if is_count else "AB"[1 - answer],
        types=("forward", row.task),
        as_of_ms=ms(moment.realtime),
    )


def _wording(place: str, row: _OvoBenchRow, moment: _OvoBenchTime) -> str:
    """Word the question of a forward task: the data set gives its subject only."""
    name = SUBJECTS[row.task]
    subject = str(getattr(moment if row.task == "SSR" else row, name) or "").strip()
    if not subject:
        raise InputError(f"{place}: {name}: it is not there")
    if row.task == "REC":
        return f"How many times did they {subject} so far? Answer with a number."
    if row.task == "SSR":
        return f"Is this step being done right now? The step: {subject}"
    return f"Was enough seen so far to answer this question? The question: {subject}"


SOURCES = (
    DatasetSource(
        name="ovo-bench",
        title="OVO-Bench",
        licence="CC BY-NC-SA 4.0",
        where=(
            f"data/{FILE} of github.com/JoeLeelyf/OVO-Bench, and the src_videos archives of "
            "huggingface.co/datasets/JoeLeelyf/OVO-Bench unpacked into src_videos/. The chunked "
            "videos are not needed: questions are asked as of their times."
        ),
        read=read,
        published=Counts(644, 3035, {**BACKWARD, **REALTIME, **FORWARD}),
    ),
)
