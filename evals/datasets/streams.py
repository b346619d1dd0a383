"""Data sets whose questions are asked as of a moment of a running video.

OVO-Bench: each question is asked as of its ``realtime``. The forward tasks ask the same thing at
several times: how often something was done so far (REC), whether a step is being done (SSR),
whether enough was seen to answer (CRR). Each of these times is a question here, as in the authors'
scores.

StreamingBench: a question of ``Proactive_Output.csv`` is to be answered once something is seen. It
is asked as of the moment at which its answer is due, and its span is the wait. The questions of
``Sequential_Question_Answering.csv`` refer to earlier ones, which are not given here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any, Self

from pydantic import Field, field_validator, model_validator

from domain.time import TimeSpan, parse_clock
from evals.dataset import Counts
from evals.datasets.files import Published, Seconds, Several, Words, letter, ms
from evals.datasets.published import Fields, PublishedRow, Specification

CLIP_MS = 30_000
"""Length of M3-Bench's clips; ``before_clip`` counts them from 0."""


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


class _M3BenchVideo(PublishedRow):
    qa_list: tuple[_M3BenchQuestion, ...]
    video_path: str = ""
    video_url: str = ""

    def about(self) -> tuple[str, str, str]:
        file = PurePosixPath(self.video_path).name or f"{self._key}.mp4"
        return self._key, file, self.video_url

    def asked(self) -> Iterator[Fields]:
        for qa in self.qa_list:
            # The end of the last clip known when it is asked; None: the whole video.
            as_of_ms = None
            if qa.before_clip is not None:
                as_of_ms = (qa.before_clip + 1) * CLIP_MS
            elif qa.timestamp:
                as_of_ms = parse_clock(qa.timestamp)
            yield {
                "at": qa.question_id,
                "id": qa.question_id,
                "question": qa.question,
                "answer": qa.answer,
                "types": qa.type,
                "as_of_ms": as_of_ms,
            }


def _m3_bench(part: str, licence: str, where: str, counts: Counts) -> Specification:
    name = f"{part}.json"
    return Specification(
        name=f"m3-{part}",
        title=f"M3-Bench, {part}",
        licence=licence,
        where=f"data/annotations/{name} of github.com/ByteDance-Seed/m3-agent; {where}",
        row=_M3BenchVideo,
        by_name=True,
        files={"": (f"data/annotations/{name}", f"annotations/{name}", name)},
        folders=(f"data/videos/{part}", f"videos/{part}", "videos", "."),
        published=counts,
    )


BACKWARD = {"EPM": 297, "ASI": 148, "HLD": 186}
REALTIME = {"OCR": 149, "ACR": 109, "ATR": 116, "STU": 178, "FPD": 101, "OJR": 184}
FORWARD = {"REC": 698, "SSR": 629, "CRR": 240}
"""Questions of each task of OVO-Bench; for the forward tasks, each of their times."""
MODES = {
    **dict.fromkeys(BACKWARD, "backward"),
    **dict.fromkeys(REALTIME, "realtime"),
    **dict.fromkeys(FORWARD, "forward"),
}
FORWARD_WORDING = {
    "REC": ("activity", "How many times did they {} so far? Answer with a number."),
    "SSR": ("step", "Is this step being done right now? The step: {}"),
    "CRR": ("question", "Was enough seen so far to answer this question? The question: {}"),
}
"""The field with the subject of a forward task, which is all that the set gives, and its words."""


class _OvoBenchTime(Published):
    realtime: Seconds
    count: int | None = None
    type: int | None = Field(default=None, ge=0, le=1)
    step: str = ""


class _OvoBenchRow(PublishedRow):
    id: Words
    task: str
    video: str
    question: str | None = None
    options: tuple[Words, ...] | None = None
    gt: int | None = Field(default=None, ge=0, le=25)
    realtime: Seconds | None = None
    activity: str = ""
    test_info: tuple[_OvoBenchTime, ...] = ()

    @model_validator(mode="after")
    def _has_what_its_task_needs(self) -> Self:
        mode = MODES.get(self.task)
        if mode is None:
            raise ValueError(f"task: {self.task!r} is none of {', '.join(MODES)}")
        if mode != "forward" and (self.gt is None or self.realtime is None or not self.options):
            raise ValueError(f"a question of {self.task} needs options, gt and realtime")
        for number, moment in enumerate(self.test_info if mode == "forward" else ()):
            answer = "count" if self.task == "REC" else "type"
            for name, there in ((answer, self._answer(moment) is not None), self._subject(moment)):
                if not there:
                    raise ValueError(f"test_info {number}: {name}: it is not there")
        return self

    def _answer(self, moment: _OvoBenchTime) -> int | None:
        return moment.count if self.task == "REC" else moment.type

    def _subject(self, moment: _OvoBenchTime) -> tuple[str, str]:
        name = FORWARD_WORDING[self.task][0]
        return name, str(getattr(moment if self.task == "SSR" else self, name) or "").strip()

    def about(self) -> tuple[str, str, str]:
        return self.video, self.video, ""

    def asked(self) -> Iterator[Fields]:
        mode = MODES[self.task]
        if mode != "forward":
            yield {
                "id": self.id,
                "question": self.question or "",
                "options": self.options or (),
                "answer": letter(self.gt or 0),
                "types": (mode, self.task),
                "as_of_ms": ms(self.realtime or 0),
            }
            return
        for place, moment in enumerate(self.test_info):
            answer = self._answer(moment) or 0
            yield {
                "at": f"test_info {place}",
                "id": f"{self.id}_{place}",
                "question": FORWARD_WORDING[self.task][1].format(self._subject(moment)[1]),
                "options": () if self.task == "REC" else ("Yes", "No"),
                "answer": str(answer) if self.task == "REC" else "BA"[answer],
                "types": (mode, self.task),
                "as_of_ms": ms(moment.realtime),
            }


TABLES = {
    "Real_Time_Visual_Understanding": ("real", 2500),
    "Omni_Source_Understanding": ("omni", 1000),
    "Contextual_Understanding": ("omni", 500),
    "Sequential_Question_Answering": ("sqa", 250),
    "Proactive_Output": ("proactive", 250),
}
"""StreamingBench: the authors' folder for a table's videos, and its number of questions."""

_ID = re.compile(r"(?P<kind>.+)_sample_(?P<sample>\d+)_\d+", re.ASCII)
_LABEL = re.compile(r"(?<!\s)\s*+([A-H])[.):]\s*")
_CLOCK = r"^\s*[0-9]{1,3}(:[0-9]{1,2}){1,2}(\.[0-9]{1,9})?\s*$"


class _StreamingBenchRow(PublishedRow):
    """A question. Its id names the folder and the number of its video."""

    id: str = Field(alias="question_id")
    task_type: str
    question: str
    time_stamp: str = Field(pattern=_CLOCK)
    options: tuple[str, ...] = Field(default=(), max_length=26)
    answer: str = ""
    due: str = Field(default="", alias="ground_truth_time_stamp", pattern=rf"^$|{_CLOCK}")
    output: str = Field(default="", alias="ground_truth_output")

    @field_validator("id")
    @classmethod
    def _names_a_video(cls, value: str) -> str:
        if not _ID.fullmatch(value.strip()):
            raise ValueError(f"{value!r} is not KIND_sample_VIDEO_QUESTION")
        return value.strip()

    @field_validator("options", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        """Parse a cell with the options as a list in Python's notation."""
        if not isinstance(value, str):
            return value
        try:
            parsed = ast.literal_eval(value)
        except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError) as error:
            raise ValueError(f"no list of options: {value[:80]!r}") from error
        return (
            joined_options([str(option) for option in parsed])
            if isinstance(parsed, list)
            else value
        )

    def folders(self) -> Sequence[str]:
        kind, under = self.id.rpartition("_sample_")[0], f"data/{TABLES[self._part][0]}"
        return kind, f"{under}/{kind}", f"videos/{kind}", under

    def about(self) -> tuple[str, str, str]:
        kind, _, rest = self.id.rpartition("_sample_")
        sample = f"sample_{rest.partition('_')[0]}"
        return f"{kind}/{sample}", f"{sample}/video.mp4", ""

    def asked(self) -> Iterator[Fields]:
        start, end = parse_clock(self.time_stamp), parse_clock(self.due or "0")
        yield {
            "id": self.id,
            "question": self.question,
            "options": self.options,
            "answer": self.answer.strip() or self.output,
            "types": (self._part.replace("_", " "), self.task_type.strip()),
            "as_of_ms": parse_clock(self.due or self.time_stamp),
            # The wait for what is to be seen, if there is one.
            "spans": (TimeSpan.of(start, end),) if end >= start and self.due else (),
        }


def joined_options(options: list[str]) -> tuple[str, ...]:
    """Return options without letters, with parts torn off by a line break joined again.

    Only a list that is too long was torn, or repeats itself: the first of each letter counts, and
    they are sorted by letter.
    """
    if not options or not _LABEL.match(options[0]):
        return tuple(options)
    if len(options) <= 4:
        return tuple(_LABEL.sub("", option, count=1).strip() for option in options)
    joined: dict[str, list[str]] = {}
    current: list[str] = []
    for option in options:
        if mark := _LABEL.match(option):
            current = []
            joined.setdefault(mark[1], current)
            option = option[mark.end() :]
        current.append(option.strip())
    return tuple(" ".join(joined[letter]) for letter in sorted(joined))


SOURCES = tuple(
    specification.source
    for specification in (
        _m3_bench(
            "robot",
            "Apache-2.0 (annotations); see the data set's page for the videos",
            "the videos are in videos/robot/ of huggingface.co/datasets/ByteDance-Seed/M3-Bench. "
            "Put both into one folder: robot.json, videos/robot/living_room_06.mp4.",
            Counts(100, 1276),
        ),
        _m3_bench(
            "web",
            "Apache-2.0 (annotations); the videos are their makers'",
            "each video is at its video_url. Put both into one folder: web.json, "
            "videos/web/Efk3K4epEzg.mp4.",
            Counts(920, 3214),
        ),
        Specification(
            name="ovo-bench",
            title="OVO-Bench",
            licence="CC BY-NC-SA 4.0",
            where=(
                "data/ovo_bench_new.json of github.com/JoeLeelyf/OVO-Bench, and the src_videos "
                "archives of huggingface.co/datasets/JoeLeelyf/OVO-Bench unpacked into "
                "src_videos/. The chunked videos are not needed: questions are asked as of their "
                "times."
            ),
            row=_OvoBenchRow,
            files={"": ("ovo_bench_new.json", "data/ovo_bench_new.json")},
            folders=("src_videos", "data/src_videos", "videos", "."),
            published=Counts(644, 3035, {**BACKWARD, **REALTIME, **FORWARD}),
        ),
        Specification(
            name="streamingbench",
            title="StreamingBench",
            licence="research only; see the data set's page",
            where=(
                "huggingface.co/datasets/mjuicem/StreamingBench: the tables of "
                "StreamingBench/*.csv, and the zips unpacked as its README tells, into data/real, "
                "data/omni, data/sqa and data/proactive."
            ),
            row=_StreamingBenchRow,
            files={table: (f"{table}.csv", f"StreamingBench/{table}.csv") for table in TABLES},
            folders=(),
            published=Counts(
                900, 4500, {table.replace("_", " "): size for table, (_, size) in TABLES.items()}
            ),
        ),
    )
)
