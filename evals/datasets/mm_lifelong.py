"""MM-Lifelong: open questions about a day, a week and a month of video.

Each of the three is one long video here, on the clock of ``total_intervals``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic import Field

from domain.time import TimeSpan
from evals.dataset import Counts, Dataset, DatasetSource, EvalQuestion, EvalVideo
from evals.datasets.files import (
    Published,
    Record,
    Seconds,
    Words,
    all_checked,
    dataset,
    file_in,
    inside,
    ms,
    question,
    records,
    root_of,
    video_in,
)

SPLITS = {
    "month-train": ("month/train.json", "month", 266),
    "month-val": ("month/val.json", "month", 623),
    "day-test": ("day/test.json", "day", 200),
    "week-test": ("week/test.json", "week", 200),
}
"""The file, the video and the number of questions of each split."""
VIDEOS = {"day": "day/0.mp4", "week": "week.mp4", "month": "month.mp4"}


class _MmLifelongRow(Published):
    index: int = Field(ge=0, le=10**9)
    question: str
    answer: Words
    question_type: str = ""
    total_intervals: tuple[tuple[Seconds, Seconds], ...] = ()

    @property
    def spans(self) -> tuple[TimeSpan, ...]:
        """Return the clues; as in the authors' scores, inverted ones are skipped."""
        times = ((ms(start), ms(end)) for start, end in self.total_intervals)
        return tuple(TimeSpan.of(start, end) for start, end in times if start <= end)


def read(folder: Path) -> Dataset:
    """Read the questions of the splits that exist.

    Raises:
        InputError: none exists, or one is malformed.
    """
    root = root_of(folder)
    split_paths = {
        split: path for split in SPLITS if (path := inside(root, _file(split), str(root))).is_file()
    }
    if not split_paths:
        file_in(root, *map(_file, SPLITS))
    videos = {SPLITS[split][1] for split in split_paths}
    questions = [
        item for split, path in split_paths.items() for item in _asked(split, records(path))
    ]
    return dataset(
        "mm-lifelong",
        str(folder),
        [
            EvalVideo(name=name, file=video_in(root, place, str(root), "videos", "."))
            for name, place in VIDEOS.items()
            if name in videos
        ],
        questions,
    )


def _file(split: str) -> str:
    return SPLITS[split][0]


def _asked(split: str, found_records: Iterator[Record]) -> Iterator[EvalQuestion]:
    for place, row in all_checked(_MmLifelongRow, found_records):
        yield question(
            place,
            id=f"{split}-{row.index}",
            video=SPLITS[split][1],
            question=row.question,
            answer=row.answer,
            types=tuple(filter(None, (split, row.question_type))),
            spans=row.spans,
        )


SOURCES = (
    DatasetSource(
        name="mm-lifelong",
        title="MM-Lifelong",
        licence="academic research only; the videos are their makers'",
        where=(
            "huggingface.co/datasets/MM-Lifelong/MM-Lifelong: month/train.json, month/val.json, "
            "day/test.json, week/test.json and videos/. Join the files of videos/week and of "
            "videos/month in order into videos/week.mp4 and videos/month.mp4, so that times are "
            "those of total_intervals."
        ),
        read=read,
        published=Counts(3, 1289, {split: size for split, (_, _, size) in SPLITS.items()}),
    ),
)
