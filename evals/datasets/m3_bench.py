"""M3-Bench: open questions about what a robot saw (asked as of a clip), and about web videos."""

from __future__ import annotations

from functools import partial
from pathlib import Path, PurePosixPath
from typing import Self

from pydantic import Field, model_validator

from domain.time import parse_clock
from evals.dataset import Counts, Dataset, DatasetSource, EvalQuestion, EvalVideo
from evals.datasets.files import (
    Published,
    Several,
    Words,
    checked,
    dataset,
    file_in,
    json_of,
    named,
    question,
    root_of,
    video,
    video_in,
)

CLIP_MS = 30_000
"""Length of the authors' clips; ``before_clip`` counts them from 0."""


class _M3BenchQuestion(Published):
    question_id: str
    question: str
    answer: Words
    type: Several = ()
    timestamp: Words = ""
    before_clip: int | None = Field(default=None, ge=-1, le=1_000_000)

    @model_validator(mode="after")
    def _asked_at_a_time(self) -> Self:
        if self.before_clip is None and self.timestamp:
            parse_clock(self.timestamp)
        return self

    @property
    def as_of_ms(self) -> int | None:
        """Return the end of the last clip known when it is asked; None: the whole video."""
        if self.before_clip is not None:
            return (self.before_clip + 1) * CLIP_MS
        return parse_clock(self.timestamp) if self.timestamp else None


class _M3BenchVideo(Published):
    qa_list: tuple[_M3BenchQuestion, ...]
    video_path: str = ""
    video_url: str = ""


def read(part: str, folder: Path) -> Dataset:
    """Read the questions of ``part`` (robot or web).

    Raises:
        InputError: the annotations are missing or malformed.
    """
    name = f"{part}.json"
    path = file_in(folder, f"data/annotations/{name}", f"annotations/{name}", name)
    rows = [(key, at[0], checked(_M3BenchVideo, at)) for key, at in named(json_of(path), str(path))]
    videos = [_video(root_of(folder), part, *row) for row in rows]
    questions = [_question(key, at, qa) for key, at, row in rows for qa in row.qa_list]
    return dataset(f"m3-{part}", str(path), videos, questions)


def _video(root: Path, part: str, key: str, place: str, row: _M3BenchVideo) -> EvalVideo:
    file = PurePosixPath(row.video_path).name or f"{key}.mp4"
    path = video_in(root, file, place, f"data/videos/{part}", f"videos/{part}", "videos", ".")
    return video(place, name=key, file=path, url=row.video_url)


def _question(key: str, place: str, qa: _M3BenchQuestion) -> EvalQuestion:
    return question(
        f"{place}, {qa.question_id}",
        id=qa.question_id,
        video=key,
        question=qa.question,
        answer=qa.answer,
        types=qa.type,
        as_of_ms=qa.as_of_ms,
    )


SOURCES = (
    DatasetSource(
        name="m3-robot",
        title="M3-Bench, robot",
        licence="Apache-2.0 (annotations); see the data set's page for the videos",
        where=(
            "data/annotations/robot.json of github.com/ByteDance-Seed/m3-agent; the videos are in "
            "videos/robot/ of huggingface.co/datasets/ByteDance-Seed/M3-Bench. Put both into one "
            "folder: robot.json, videos/robot/living_room_06.mp4."
        ),
        read=partial(read, "robot"),
        published=Counts(videos=100, questions=1276),
    ),
    DatasetSource(
        name="m3-web",
        title="M3-Bench, web",
        licence="Apache-2.0 (annotations); the videos are their makers'",
        where=(
            "data/annotations/web.json of github.com/ByteDance-Seed/m3-agent; each video is at its "
            "video_url. Put both into one folder: web.json, videos/web/Efk3K4epEzg.mp4."
        ),
        read=partial(read, "web"),
        published=Counts(videos=920, questions=3214),
    ),
)
