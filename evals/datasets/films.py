"""Data sets that are asked after the end of a video."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import AliasChoices, Field, field_validator, model_validator

from domain.errors import InputError
from domain.time import TimeSpan, parse_clock
from evals.dataset import Counts
from evals.datasets.files import (
    Lettered,
    Published,
    Seconds,
    Several,
    Words,
    file_in,
    inside,
    instant,
    json_of,
    letter,
    ms,
    without_labels,
    youtube,
)
from evals.datasets.published import Fields, PublishedRow, Specification

Length = Literal["short", "medium", "long"]
LENGTHS: tuple[Length, ...] = get_args(Length)
VIDEO_MME_TYPES = {
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


class _VideoMmeRow(PublishedRow):
    video_id: str
    youtube: str = Field(alias="videoID")
    question_id: str
    question: str
    options: tuple[str, ...]
    answer: str
    duration: Length
    task_type: str
    url: str = ""

    def about(self) -> tuple[str, str, str]:
        return self.video_id, self.youtube, self.url

    def asked(self) -> Iterator[Fields]:
        yield {
            "id": self.question_id,
            "question": self.question,
            "options": without_labels(self.options),
            "answer": self.answer.strip(),
            "types": (self.duration, self.task_type),
        }


def _video_mme(length: Length | None) -> Specification:
    parquet = "test-00000-of-00001.parquet"
    types: dict[str, int] = dict.fromkeys(LENGTHS, 900) | VIDEO_MME_TYPES
    return Specification(
        name=f"video-mme-{length}" if length else "video-mme",
        title=f"Video-MME, {length}" if length else "Video-MME",
        licence="academic research only; the videos are their makers'",
        where=(
            f"huggingface.co/datasets/lmms-lab/Video-MME: videomme/{parquet}, and the zips of the "
            "videos unpacked into data/, as in data/fFjv93ACGo8.mp4."
        ),
        row=_VideoMmeRow,
        files={"": (f"videomme/{parquet}", parquet)},
        folders=("data", "videos", "."),
        keep=lambda row: length in (None, row.duration),
        published=Counts(300, 900, {length: 900}) if length else Counts(900, 2700, types),
    )


_OPTION = re.compile(r"\n[^\S\n]*+\(([A-Z])\)[ \t]*")
_CLOCK = re.compile(r"\d{1,5}(:\d{1,2}){0,2}", re.ASCII)
_SPAN = re.compile(r"(?<![\d:])([\d:]++)\s*+-\s*+([\d:]++)")


class _LvBenchQuestion(Published):
    uid: Words
    question: str
    answer: str
    question_type: Several = ()
    time_reference: Words = ""


class _LvBenchVideo(PublishedRow):
    video: str = Field(alias="key")
    qa: tuple[_LvBenchQuestion, ...]

    @field_validator("qa", mode="before")
    @classmethod
    def _none(cls, value: object) -> object:
        return () if value is None else value

    def about(self) -> tuple[str, str, str]:
        return self.video, self.video, youtube(self.video)

    def asked(self) -> Iterator[Fields]:
        for qa in self.qa:
            words, options = split_options(qa.question)
            yield {
                "at": f"uid {qa.uid}",
                "id": qa.uid,
                "question": words,
                "options": options,
                "answer": qa.answer.strip(),
                "types": qa.question_type,
                "spans": spans(qa.time_reference),
            }


def split_options(text: str) -> tuple[str, tuple[str, ...]]:
    """Split a question from its options, which follow as ``(A) ...``, a line each."""
    first, *rest = _OPTION.split(text)
    options = sorted(zip(rest[::2], rest[1::2], strict=True), key=itemgetter(0))
    return first.strip(), tuple(option.strip() for _, option in options)


def spans(text: str) -> tuple[TimeSpan, ...]:
    """Parse the spans in ``12:01-12:09, 1:02:00-1:03:00``; anything else is skipped."""
    ends = [pair for pair in _SPAN.findall(text) if all(map(_CLOCK.fullmatch, pair))]
    times = [(parse_clock(start), parse_clock(end)) for start, end in ends]
    return tuple(TimeSpan.of(start, end) for start, end in times if start <= end)


ANSWERS = "subset_answers.json"


class _EgoSchemaRow(PublishedRow):
    uid: str = Field(alias="q_uid")
    question: str
    option_0: str = Field(alias="option 0")
    option_1: str = Field(alias="option 1")
    option_2: str = Field(alias="option 2")
    option_3: str = Field(alias="option 3")
    option_4: str = Field(alias="option 4")
    answer: str = ""

    def about(self) -> tuple[str, str, str]:
        return self.uid, self.uid, ""

    def asked(self) -> Iterator[Fields]:
        options = (self.option_0, self.option_1, self.option_2, self.option_3, self.option_4)
        yield {
            "id": self.uid,
            "question": self.question,
            "options": options,
            "answer": self.answer,
        }


def _public_answers(root: Path) -> Callable[[Mapping[str, Any]], Fields]:
    """Return the letter of the right option where it is public, else an empty one."""
    path = file_in(root, ANSWERS)
    answers = json_of(path)
    if not isinstance(answers, dict):
        raise InputError(f"{path} is no object of answers by question")
    for uid, place in answers.items():
        if not isinstance(place, int) or not 0 <= place <= 4:
            raise InputError(f"{path}, {uid}: {place!r} is no option from 0 to 4")
    letters = {uid: letter(place) for uid, place in answers.items()}
    return lambda record: {"answer": letters.get(str(record.get("q_uid")), "")}


def _egoschema(name: str, title: str, size: int, keep: Callable[[Any], bool]) -> Specification:
    return Specification(
        name=name,
        title=title,
        licence="Ego4D licence, for which you sign",
        where=(
            f"questions.json and {ANSWERS} of github.com/egoschema/EgoSchema; its download.py "
            "fetches the clips into videos/, each named by its q_uid."
        ),
        row=_EgoSchemaRow,
        files={"": ("questions.json",)},
        add=_public_answers,
        keep=keep,
        published=Counts(size, size),
    )


class _LongVideoBenchRow(PublishedRow):
    id: Words
    video_id: str
    video_path: str
    question: str
    candidates: tuple[Words, ...] = Field(min_length=2)
    correct_choice: int = Field(default=-1, ge=-1, le=25)
    question_category: str = ""
    duration_group: Words = ""

    def about(self) -> tuple[str, str, str]:
        return self.video_id, self.video_path, youtube(self.video_id)

    def asked(self) -> Iterator[Fields]:
        length = f"up to {self.duration_group} s" if self.duration_group else ""
        yield {
            "id": self.id,
            "question": self.question,
            "options": self.candidates,
            "answer": letter(self.correct_choice) if self.correct_choice >= 0 else "",
            "types": tuple(filter(None, (length, self.question_category))),
        }


def _longvideobench(name: str, file: str, title: str, counts: Counts) -> Specification:
    return Specification(
        name=name,
        title=title,
        licence="CC BY-NC-SA 4.0",
        where=(
            f"huggingface.co/datasets/longvideobench/LongVideoBench: {file}, and videos.tar.part.* "
            "joined and unpacked, as in videos/86CxyhFV9MI.mp4."
        ),
        row=_LongVideoBenchRow,
        files={"": (file,)},
        published=counts,
    )


class _Frame(Published):
    timestamp: Seconds


class _HippoVlogRow(PublishedRow):
    question: str = Field(alias="question_text")
    options: Lettered
    answer: str = Field(alias="correct_answer")
    video_id: str
    category: str
    frame_info: _Frame | None = None

    def about(self) -> tuple[str, str, str]:
        return self.video_id, self.video_id, youtube(self.video_id)

    def asked(self) -> Iterator[Fields]:
        yield {
            "id": str(self._number),
            "question": self.question,
            "options": self.options,
            "answer": self.answer.strip(),
            "types": (self.category,),
            "spans": (instant(ms(self.frame_info.timestamp)),) if self.frame_info else (),
        }


SPLITS = {
    "month-train": ("month/train.json", "month", 266),
    "month-val": ("month/val.json", "month", 623),
    "day-test": ("day/test.json", "day", 200),
    "week-test": ("week/test.json", "week", 200),
}
"""The file, the video and the number of questions of each split of MM-Lifelong."""
LIFELONG_VIDEOS = {"day": "day/0.mp4", "week": "week.mp4", "month": "month.mp4"}


class _MmLifelongRow(PublishedRow):
    """A question. Each of the three videos is one long one, on the clock of ``total_intervals``."""

    index: int = Field(ge=0, le=10**9)
    question: str
    answer: Words
    question_type: str = ""
    total_intervals: tuple[tuple[Seconds, Seconds], ...] = ()

    def about(self) -> tuple[str, str, str]:
        name = SPLITS[self._part][1]
        return name, LIFELONG_VIDEOS[name], ""

    def asked(self) -> Iterator[Fields]:
        times = ((ms(start), ms(end)) for start, end in self.total_intervals)
        yield {
            "id": f"{self._part}-{self.index}",
            "question": self.question,
            "answer": self.answer,
            "types": tuple(filter(None, (self._part, self.question_type))),
            # As in the authors' scores, inverted clues are skipped.
            "spans": tuple(TimeSpan.of(start, end) for start, end in times if start <= end),
        }


NEXTQA_TABLES = ("val.csv", "test.csv", "MC/test-00000-of-00001.parquet")
NEXTQA_PLACES = "map_vid_vidorID.json"
NEXTQA_CAPTIONS = ("captions.jsonl.gz", "captions.jsonl")
NEXTQA_KINDS = {"C": "causal", "T": "temporal", "D": "descriptive"}
CHOICES = 5


class _NextQaRow(PublishedRow):
    """A question. ``answer`` is the right option's letter, or its number from 0."""

    id: Words = Field(validation_alias=AliasChoices("id", "qid"))
    video: Words
    type: Words
    question: str
    options: tuple[Words, ...] = Field(min_length=2, max_length=26)
    answer: Words
    archived: str = ""

    @model_validator(mode="before")
    @classmethod
    def _columns_are_options(cls, row: Any) -> Any:
        if not isinstance(row, dict) or "options" in row:
            return row
        return {**row, "options": [row.get(f"a{n}") for n in range(CHOICES)]}

    @field_validator("answer")
    @classmethod
    def _as_letter(cls, value: str) -> str:
        return letter(int(value)) if value.isascii() and value.isdigit() else value.strip().upper()

    def about(self) -> tuple[str, str, str]:
        return self.video, self.archived or self.video, ""

    def asked(self) -> Iterator[Fields]:
        has_video_id = self.id.startswith(f"{self.video}_")
        yield {
            "id": self.id if has_video_id else f"{self.video}_{self.id}",
            "question": self.question,
            "options": self.options,
            "answer": self.answer,
            # The kind of question, then the authors' own type, as in causal and CW.
            "types": (NEXTQA_KINDS.get(self.type[:1], self.type), self.type),
        }


def _archived(root: Path) -> Callable[[Mapping[str, Any]], Fields]:
    """Return where the video is in the authors' archive, as in ``1164/3238737531``."""
    path = inside(root, NEXTQA_PLACES, NEXTQA_PLACES)
    places = json_of(path) if path.is_file() else {}
    known = {str(name): str(at) for name, at in places.items()} if isinstance(places, dict) else {}
    return lambda record: {"archived": known.get(str(record.get("video")), "")}


SOURCES = tuple(
    specification.source
    for specification in (
        *map(_video_mme, (None, *LENGTHS)),
        Specification(
            name="lvbench",
            title="LVBench",
            licence="CC BY-NC-SA 4.0; the videos are their makers'",
            where=(
                "video_info.meta.jsonl of huggingface.co/datasets/THUDM/LVBench; each video is on "
                "YouTube under its key. Lay them out as videos/Cm73ma6Ibcs.mp4 beside it."
            ),
            row=_LvBenchVideo,
            files={"": ("video_info.meta.jsonl", "data/video_info.meta.jsonl")},
            folders=("videos", "all_videos", "."),
            published=Counts(103, 1549),
        ),
        _egoschema("egoschema", "EgoSchema (500 of the answers are public)", 5031, bool),
        _egoschema(
            "egoschema-subset",
            "EgoSchema, the questions with public answers",
            500,
            lambda row: bool(row.answer),
        ),
        _longvideobench(
            "longvideobench",
            "lvb_val.json",
            "LongVideoBench, validation",
            Counts(
                questions=1337,
                types={
                    "up to 15 s": 189,
                    "up to 60 s": 172,
                    "up to 600 s": 412,
                    "up to 3600 s": 564,
                },
            ),
        ),
        _longvideobench(
            "longvideobench-test",
            "lvb_test_wo_gt.json",
            "LongVideoBench, test (its answers are kept by its authors)",
            Counts(questions=5341),
        ),
        Specification(
            name="hippovlog",
            title="HippoVlog",
            licence="not stated by its authors; the videos are their makers'",
            where=(
                "questions.jsonl of github.com/linyueqian/HippoVlog; its download.sh fetches the "
                "vlogs into videos/, as in videos/HLDPA3FTUJ4.mp4."
            ),
            row=_HippoVlogRow,
            files={"": ("questions.jsonl",)},
            published=Counts(
                25, 1000, dict.fromkeys(("audio_visual", "audio", "visual", "summary"), 250)
            ),
        ),
        Specification(
            name="mm-lifelong",
            title="MM-Lifelong",
            licence="academic research only; the videos are their makers'",
            where=(
                "huggingface.co/datasets/MM-Lifelong/MM-Lifelong: month/train.json, "
                "month/val.json, day/test.json, week/test.json and videos/. Join the files of "
                "videos/week and of videos/month in order into videos/week.mp4 and "
                "videos/month.mp4, so that times are those of total_intervals."
            ),
            row=_MmLifelongRow,
            files={split: (file,) for split, (file, _, _) in SPLITS.items()},
            published=Counts(3, 1289, {split: size for split, (_, _, size) in SPLITS.items()}),
        ),
        Specification(
            name="nextqa",
            title="NExT-QA, multiple choice, validation part",
            licence="MIT; the videos are those of VidOR, for research",
            where=(
                f"{NEXTQA_TABLES[0]} of github.com/doc-doc/NExT-QA (dataset/nextqa) with "
                f"{NEXTQA_PLACES}, the videos in NExTVideo/. Without videos, captions do: "
                f"{NEXTQA_CAPTIONS[0]} for homer import, each line with its video."
            ),
            row=_NextQaRow,
            files={"": ("questions.json", *NEXTQA_TABLES)},
            folders=("NExTVideo", "videos"),
            add=_archived,
            captions=NEXTQA_CAPTIONS,
            baseline=True,
            published=Counts(570, 4996),
        ),
    )
)
