"""Video-MME: four-choice questions about short, medium and long videos."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Literal, get_args

from pydantic import Field

from evals.dataset import Counts, Dataset, DatasetSource, EvalQuestion, EvalVideo
from evals.datasets.files import (
    Published,
    all_checked,
    dataset,
    file_in,
    question,
    records,
    root_of,
    video,
    video_in,
    without_labels,
)

PARQUET = "test-00000-of-00001.parquet"
Length = Literal["short", "medium", "long"]
LENGTHS: tuple[Length, ...] = get_args(Length)
TYPES = {
    "Temporal Perception": 55,
    "Spatial Perception": 54,
    "Attribute Perception": 222,
    "Action Recognition": 313,
    "Object Recognition": 354,
    "OCR Problems": 139,
    "Counting Problem": 268,
    "Temporal Reasoning": 177,
    "Spatial Reasoning": 56,
    "Action Reasoning": 285,
    "Object Reasoning": 454,
    "Information Synopsis": 323,
}


class _VideoMmeRow(Published):
    video_id: str
    youtube: str = Field(alias="videoID")
    question_id: str
    question: str
    options: tuple[str, ...]
    answer: str
    duration: Length
    task_type: str
    url: str = ""


def read(length: Length | None, folder: Path) -> Dataset:
    """Read the questions about videos of ``length``, or about all.

    Raises:
        InputError: the Parquet file is missing or malformed.
    """
    path = file_in(folder, f"videomme/{PARQUET}", PARQUET)
    all_rows = all_checked(_VideoMmeRow, records(path))
    rows = [(place, row) for place, row in all_rows if length in (None, row.duration)]
    videos = [_video(root_of(folder), *row) for row in rows]
    return dataset(_name(length), str(path), videos, [_question(*row) for row in rows])


def _name(length: Length | None) -> str:
    return f"video-mme-{length}" if length else "video-mme"


def _video(root: Path, place: str, row: _VideoMmeRow) -> EvalVideo:
    file = video_in(root, row.youtube, place, "data", "videos", ".")
    return video(place, name=row.video_id, file=file, url=row.url)


def _question(place: str, row: _VideoMmeRow) -> EvalQuestion:
    return question(
        place,
        id=row.question_id,
        video=row.video_id,
        question=row.question,
        options=without_labels(row.options),
        answer=row.answer.strip(),
        types=(row.duration, row.task_type),
    )


def _source(length: Length | None) -> DatasetSource:
    types: dict[str, int] = {length: 900} if length else {**dict.fromkeys(LENGTHS, 900), **TYPES}
    return DatasetSource(
        name=_name(length),
        title=f"Video-MME, {length}" if length else "Video-MME",
        licence="academic research only; the videos are their makers'",
        where=(
            f"huggingface.co/datasets/lmms-lab/Video-MME: videomme/{PARQUET}, and the zips of the "
            "videos unpacked into data/, as in data/fFjv93ACGo8.mp4."
        ),
        read=partial(read, length),
        published=Counts(300 if length else 900, 900 if length else 2700, types),
    )


SOURCES = tuple(_source(length) for length in (None, *LENGTHS))
