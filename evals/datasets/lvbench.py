"""LVBench: four-choice questions about videos of an hour and more, with the time of the answer."""

from __future__ import annotations

import re
from operator import itemgetter
from pathlib import Path

from pydantic import field_validator

from domain.time import TimeSpan, parse_clock
from evals.dataset import Counts, Dataset, DatasetSource, EvalQuestion, EvalVideo
from evals.datasets.files import (
    Published,
    Several,
    Words,
    all_checked,
    dataset,
    file_in,
    question,
    records,
    root_of,
    video,
    video_in,
    youtube,
)

META = "video_info.meta.jsonl"
_OPTION = re.compile(r"\n[^\S\n]*+\(([A-Z])\)[ \t]*")
_SPAN = re.compile(r"(?<![\d:])([\d:]++)\s*+-\s*+([\d:]++)")


class _LvBenchQuestion(Published):
    uid: Words
    question: str
    answer: str
    question_type: Several = ()
    time_reference: Words = ""


class _LvBenchVideo(Published):
    key: str
    type: str = ""
    qa: tuple[_LvBenchQuestion, ...]

    @field_validator("qa", mode="before")
    @classmethod
    def _none(cls, value: object) -> object:
        return () if value is None else value


def read(folder: Path) -> Dataset:
    """Read the questions of ``video_info.meta.jsonl``, one video a line.

    Raises:
        InputError: it is missing or malformed.
    """
    path = file_in(folder, META, f"data/{META}")
    rows = list(all_checked(_LvBenchVideo, records(path)))
    videos = [_video(root_of(folder), *row) for row in rows]
    questions = [_question(place, row, qa) for place, row in rows for qa in row.qa]
    return dataset("lvbench", str(path), videos, questions)


def _video(root: Path, place: str, row: _LvBenchVideo) -> EvalVideo:
    file = video_in(root, row.key, place, "videos", "all_videos", ".")
    return video(place, name=row.key, file=file, url=youtube(row.key))


def _question(place: str, row: _LvBenchVideo, qa: _LvBenchQuestion) -> EvalQuestion:
    words, options = split_options(qa.question)
    return question(
        f"{place}, uid {qa.uid}",
        id=qa.uid,
        video=row.key,
        question=words,
        options=options,
        answer=qa.answer.strip(),
        types=qa.question_type,
        spans=spans(qa.time_reference),
    )


def split_options(text: str) -> tuple[str, tuple[str, ...]]:
    """Split a question from its options, which follow as ``(A) ...``, a line each."""
    first, *rest = _OPTION.split(text)
    options = sorted(zip(rest[::2], rest[1::2], strict=True), key=itemgetter(0))
    return first.strip(), tuple(option.strip() for _, option in options)


def spans(text: str) -> tuple[TimeSpan, ...]:
    """Parse the spans in ``12:01-12:09, 1:02:00-1:03:00``; anything else is skipped."""
    pairs = ((parse_clock(a), parse_clock(b)) for a, b in _SPAN.findall(text) if _clocks(a, b))
    return tuple(TimeSpan.of(start, end) for start, end in pairs if start <= end)


def _clocks(*texts: str) -> bool:
    return all(re.fullmatch(r"\d{1,5}(:\d{1,2}){0,2}", text, re.ASCII) for text in texts)


SOURCES = (
    DatasetSource(
        name="lvbench",
        title="LVBench",
        licence="CC BY-NC-SA 4.0; the videos are their makers'",
        where=(
            f"{META} of huggingface.co/datasets/THUDM/LVBench; each video is on YouTube under its "
            "key. Lay them out as videos/Cm73ma6Ibcs.mp4 beside it."
        ),
        read=read,
        published=Counts(videos=103, questions=1549),
    ),
)
