"""LongVideoBench: questions that refer to a moment of a video, with up to five options."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from pydantic import Field

from evals.dataset import Counts, Dataset, DatasetSource, EvalQuestion, EvalVideo
from evals.datasets.files import (
    Published,
    Words,
    all_checked,
    dataset,
    file_in,
    letter,
    question,
    records,
    root_of,
    video,
    video_in,
    youtube,
)


class _LongVideoBenchRow(Published):
    id: Words
    video_id: str
    video_path: str
    question: str
    candidates: tuple[Words, ...] = Field(min_length=2)
    correct_choice: int = Field(default=-1, ge=-1, le=25)
    question_category: str = ""
    duration_group: Words = ""


def read(file: str, name: str, folder: Path) -> Dataset:
    """Read the questions of ``file``; those of the test part have no answers.

    Raises:
        InputError: it is missing or malformed.
    """
    path = file_in(folder, file)
    rows = list(all_checked(_LongVideoBenchRow, records(path)))
    videos = [_video(root_of(folder), *row) for row in rows]
    return dataset(name, str(path), videos, [_question(*row) for row in rows])


def _video(root: Path, place: str, row: _LongVideoBenchRow) -> EvalVideo:
    file = video_in(root, row.video_path, place, "videos", ".")
    return video(place, name=row.video_id, file=file, url=youtube(row.video_id))


def _question(place: str, row: _LongVideoBenchRow) -> EvalQuestion:
    return question(
        place,
        id=row.id,
        video=row.video_id,
        question=row.question,
        options=row.candidates,
        answer=letter(row.correct_choice) if row.correct_choice >= 0 else "",
        types=tuple(filter(None, (_length(row.duration_group), row.question_category))),
    )


def _length(group: str) -> str:
    return f"up to {group} s" if group else ""


def _source(name: str, file: str, title: str, counts: Counts) -> DatasetSource:
    return DatasetSource(
        name=name,
        title=title,
        licence="CC BY-NC-SA 4.0",
        where=(
            f"huggingface.co/datasets/longvideobench/LongVideoBench: {file}, and videos.tar.part.* "
            "joined and unpacked, as in videos/86CxyhFV9MI.mp4."
        ),
        read=partial(read, file, name),
        published=counts,
    )


LENGTHS = {"up to 15 s": 189, "up to 60 s": 172, "up to 600 s": 412, "up to 3600 s": 564}

SOURCES = (
    _source(
        "longvideobench",
        "lvb_val.json",
        "LongVideoBench, validation",
        Counts(questions=1337, types=LENGTHS),
    ),
    _source(
        "longvideobench-test",
        "lvb_test_wo_gt.json",
        "LongVideoBench, test (its answers are kept by its authors)",
        Counts(questions=5341),
    ),
)
