"""HippoVlog: four-choice questions about vlogs: seen, heard, both, or the whole."""

from __future__ import annotations

from pathlib import Path
from string import ascii_uppercase

from pydantic import Field, field_validator

from evals.dataset import Counts, Dataset, DatasetSource, EvalQuestion, EvalVideo
from evals.datasets.files import (
    Published,
    Seconds,
    all_checked,
    dataset,
    file_in,
    instant,
    ms,
    question,
    records,
    root_of,
    video,
    video_in,
    youtube,
)

FILE = "questions.jsonl"
CATEGORIES = ("audio_visual", "audio", "visual", "summary")


class _Frame(Published):
    timestamp: Seconds


class _HippoVlogRow(Published):
    question: str = Field(alias="question_text")
    options: dict[str, str]
    answer: str = Field(alias="correct_answer")
    video_id: str
    category: str
    frame_info: _Frame | None = None

    @field_validator("options")
    @classmethod
    def _lettered(cls, options: dict[str, str]) -> dict[str, str]:
        if sorted(options) != list(ascii_uppercase[: len(options)]):
            raise ValueError(f"options are named {', '.join(options)}, not A, B, C ...")
        return dict(sorted(options.items()))


def read(folder: Path) -> Dataset:
    """Read the questions of ``questions.jsonl``, numbered by line.

    Raises:
        InputError: it is missing or malformed.
    """
    path = file_in(folder, FILE)
    rows = list(all_checked(_HippoVlogRow, records(path)))
    videos = [_video(root_of(folder), *row) for row in rows]
    questions = [_question(str(n), *row) for n, row in enumerate(rows, 1)]
    return dataset("hippovlog", str(path), videos, questions)


def _video(root: Path, place: str, row: _HippoVlogRow) -> EvalVideo:
    file = video_in(root, row.video_id, place, "videos", ".")
    return video(place, name=row.video_id, file=file, url=youtube(row.video_id))


def _question(number: str, place: str, row: _HippoVlogRow) -> EvalQuestion:
    frame = row.frame_info
    return question(
        place,
        id=number,
        video=row.video_id,
        question=row.question,
        options=tuple(row.options.values()),
        answer=row.answer.strip(),
        types=(row.category,),
        spans=(instant(ms(frame.timestamp)),) if frame else (),
    )


SOURCES = (
    DatasetSource(
        name="hippovlog",
        title="HippoVlog",
        licence="not stated by its authors; the videos are their makers'",
        where=(
            f"{FILE} of github.com/linyueqian/HippoVlog; its download.sh fetches the vlogs into "
            "videos/, as in videos/HLDPA3FTUJ4.mp4."
        ),
        read=read,
        published=Counts(videos=25, questions=1000, types=dict.fromkeys(CATEGORIES, 250)),
    ),
)
