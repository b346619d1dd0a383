"""Sets that are asked while the video runs, each question as of its time; and MM-Lifelong."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from domain.errors import InputError
from domain.time import TimeSpan
from evals.datasets import read
from evals.datasets.egolife import targets
from evals.datasets.streams import joined_options
from evals.report_formats import write_submissions
from tests.support.datasets import (
    EGOLIFE,
    EGOMEM,
    LIFELONG,
    OVO,
    STREAMING,
    STREAMING_DUE,
    STREAMING_REAL,
    lay,
)

DAY_MS = 86_400_000
NOON = 12 * 3_600_000
WRONG: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "streamingbench": ("Real_Time_Visual_Understanding.csv", [STREAMING_REAL]),
    "egolifeqa": ("EgoLifeQA_A1_JAKE.json", [EGOLIFE, EGOLIFE]),
    "egomemreason": ("annotations_public.jsonl", [EGOMEM, {**EGOMEM, "example_id": 8}]),
}
"""The file of a set, and its records, the last of which goes wrong."""


def test_ovo_bench_asks_as_of_now(tmp_path: Path) -> None:
    files = {"data/ovo_bench_new.json": OVO, "src_videos/Ego4D/walk.mp4": None}
    found = read("ovo-bench", lay(tmp_path, files))
    asked = found.questions[0]
    assert (asked.id, asked.as_of_ms, asked.answer) == ("0", 67_500, "B")
    assert asked.types == ("backward", "EPM")
    assert found.videos[0].file == tmp_path / "src_videos/Ego4D/walk.mp4"


def test_ovo_bench_asks_the_same_at_several_times(tmp_path: Path) -> None:
    found = read("ovo-bench", lay(tmp_path, {"ovo_bench_new.json": OVO}))
    output = [(one.id, one.as_of_ms, one.answer, one.types[1]) for one in found.questions[1:]]
    assert output == [
        ("1_0", 4_000, "0", "REC"),
        ("1_1", 9_250, "2", "REC"),
        ("2_0", 10_000, "B", "SSR"),
        ("2_1", 20_000, "A", "SSR"),
        ("3_0", 200_000, "B", "CRR"),
        ("3_1", 222_000, "A", "CRR"),
    ]
    counts, steps, enough = (found.questions[n] for n in (1, 3, 5))
    assert "jump over the rope" in counts.question
    assert counts.options == ()
    assert "add salt" in steps.question
    assert steps.options == enough.options == ("Yes", "No")
    assert "Whom does he meet?" in enough.question
    assert "aunt" not in enough.question


@pytest.mark.parametrize(
    ("place", "more", "output"),
    [
        (0, {"task": "XYZ"}, "record 1: task: 'XYZ' is none of EPM"),
        (0, {"gt": None}, "record 1: gt: "),
        (0, {"gt": 2}, "record 1: the question: .*none of the options"),
        (1, {"test_info": [{"realtime": 1}]}, "record 2: test_info 0: count is missing"),
        (1, {"activity": " "}, "record 2: test_info 0: activity: "),
    ],
)
def test_a_wrong_record_of_ovo_bench_is_reported(
    tmp_path: Path, place: int, more: dict[str, Any], output: str
) -> None:
    rows = [{**row, **more} if n == place else row for n, row in enumerate(OVO)]
    with pytest.raises(InputError, match=output):
        read("ovo-bench", lay(tmp_path, {"ovo_bench_new.json": rows}))


def test_streamingbench_asks_as_of_its_time_stamp(tmp_path: Path) -> None:
    place = "data/real/sample_1/video.mp4"
    found = read("streamingbench", lay(tmp_path, {**STREAMING, place: None}))
    asked, _ = found.questions
    assert asked.video == "Real-Time Visual Understanding/sample_1"
    assert asked.types == ("Real Time Visual Understanding", "Object Perception")
    assert (asked.as_of_ms, asked.answer) == (64_000, "B")
    assert asked.options == ("A fox.", "A hen.", "An owl.", "None.")
    assert found.videos[0].file == tmp_path / place


def test_what_is_to_be_said_when_it_happens_is_asked_when_it_is_due(tmp_path: Path) -> None:
    _, due = read("streamingbench", lay(tmp_path, STREAMING)).questions
    assert (due.as_of_ms, due.answer, due.options) == (29_000, "3", ())
    assert due.spans == (TimeSpan.of(20_000, 29_000),)


@pytest.mark.parametrize(
    ("listed", "options"),
    [
        (["A.Red", "Blue", "Green"], ("Red", "Blue", "Green")),
        (["A. Red", "B. Blue", "B. Green", "D. Pink"], ("Red", "Blue", "Green", "Pink")),
        (["J.K. Rowling", "A. A. Milne"], ("J.K. Rowling", "A. A. Milne")),
        (["A. 1", "B. 2", "C. 3 and", "more", "D. 4"], ("1", "2", "3 and more", "4")),
        (["A. 1", "B. 2", "C. 3", "D. 4", "B. 2", "C. 3", "D. 4"], ("1", "2", "3", "4")),
        (["A. 1", "C. 3", "B. 2", "D. 4", "A. 1"], ("1", "2", "3", "4")),
        ([], ()),
    ],
)
def test_torn_or_doubled_options_are_mended(listed: list[str], options: tuple[str, ...]) -> None:
    assert joined_options(listed) == options


def test_one_table_may_be_named(tmp_path: Path) -> None:
    lay(tmp_path, {"Proactive_Output.csv": [STREAMING_DUE]})
    assert len(read("streamingbench", tmp_path / "Proactive_Output.csv").questions) == 1
    with pytest.raises(InputError, match="Real_Time"):
        read("streamingbench", lay(tmp_path / "none", {"other.csv": [STREAMING_DUE]}))


def test_egolife_counts_from_midnight_of_the_first_day(tmp_path: Path) -> None:
    files = {"EgoLifeQA/EgoLifeQA_A1_JAKE.json": [EGOLIFE], "captions.jsonl.gz": None}
    found = read("egolifeqa", lay(tmp_path, files))
    (asked,), (video,) = found.questions, found.videos
    assert asked.as_of_ms == DAY_MS + (11 * 3600 + 21 * 60 + 2) * 1000
    assert asked.options == ("Ann", "Bob", "Eve", "Dan")
    assert (asked.answer, asked.types, asked.video) == ("B", ("EntityLog",), "A1_JAKE")
    start = (11 * 3600 + 15 * 60 + 24) * 1000
    assert asked.spans == (TimeSpan.of(start, start + 1000),)
    assert video.captions == tmp_path / "captions.jsonl.gz"


@pytest.mark.parametrize(
    ("output", "found"),
    [
        ({"date": "DAY1", "time": "12000000"}, [(NOON, NOON + 1000)]),
        ({"date": "DAY1", "time": "12000000-12000500"}, [(NOON, NOON + 5000)]),
        ({"date": "DAY1", "time": "12000000_DAY2_12000500"}, [(NOON, DAY_MS + NOON + 5000)]),
        (
            {"date": "DAY1", "time_list": ["12000000", "12000500"]},
            [(NOON, NOON + 1000), (NOON + 5000, NOON + 6000)],
        ),
        (
            [{"date": "DAY1", "time_list": ["12000000"]}, {"date": "DAY2", "time": "12000000"}],
            [(NOON, NOON + 1000), (DAY_MS + NOON, DAY_MS + NOON + 1000)],
        ),
        ({"date": "DAY1", "time": "noon"}, []),
        ({"time": "12000000"}, []),
        (None, []),
    ],
)
def test_targets_are_moments_or_stretches(output: Any, found: list[tuple[int, int]]) -> None:
    assert [(span.start_ms, span.end_ms) for span in targets(output)] == found


def test_the_form_of_eval_egolife_is_read_too(tmp_path: Path) -> None:
    ours = {
        "id": "7",
        "type": "EntityLog",
        "question": "Whose phone?",
        "options": ["Alice's", "Mine"],
        "answer": "B",
        "as_of": {"day": 2, "second": 100},
        "targets": [
            {"day": 1, "start": 50, "end_day": 1, "end": 50},
            {"day": 1, "start": 86_390, "end_day": 2, "end": 5},
        ],
    }
    (tmp_path / "questions.json").write_text(json.dumps([ours]))
    asked = read("egolifeqa", lay(tmp_path, {"captions.jsonl.gz": None})).questions[0]
    assert (asked.video, asked.as_of_ms, asked.answer) == ("egolife", DAY_MS + 100_000, "B")
    assert asked.spans == (TimeSpan.of(50_000, 51_000), TimeSpan.of(86_390_000, 86_405_000))


def test_egomemreason_has_a_week_for_each_person_and_keeps_its_answers(tmp_path: Path) -> None:
    other = {**EGOMEM, "example_id": 8, "identity": "A4_LUCIA", "query_time": "day 2, 9:05:01"}
    files = {
        "annotations_public.jsonl": [EGOMEM, other],
        "captions.jsonl.gz": None,
        "A4_LUCIA.jsonl": None,
    }
    found = read("egomemreason", lay(tmp_path, files))
    first, second = found.questions
    assert first.options == ("Pan, cup", "Cup, pan", "Only the pan")
    assert (first.id, first.answer, first.types) == ("7", "", ("Event Ordering",))
    assert first.as_of_ms == 6 * DAY_MS + 19 * 3_600_000
    assert second.as_of_ms == DAY_MS + 1000 * (9 * 3600 + 5 * 60 + 1)
    names = {video.name: video.captions and video.captions.name for video in found.videos}
    assert names == {"A1_JAKE": "captions.jsonl.gz", "A4_LUCIA": "A4_LUCIA.jsonl"}


def test_egomemreason_without_person_type_or_time_is_of_the_whole_week(tmp_path: Path) -> None:
    bare = {name: EGOMEM[name] for name in ("example_id", "question", "options")}
    (asked,) = read("egomemreason", lay(tmp_path, {"annotations_public.jsonl": [bare]})).questions
    assert (asked.video, asked.as_of_ms, asked.types) == ("A1_JAKE", None, ())


@pytest.mark.parametrize(
    ("name", "more", "output"),
    [
        ("streamingbench", {"time_stamp": "soon"}, "line 2: time_stamp"),
        ("streamingbench", {"options": "['A. 1'"}, "line 2: options: .*no list of options"),
        (
            "streamingbench",
            {"options": "__import__('os')"},
            "line 2: options: .*no list of options",
        ),
        (
            "streamingbench",
            {"question_id": "../up_sample_1_1"},
            "line 2: .* leads out of the folder",
        ),
        (
            "egolifeqa",
            {"query_time": {"date": "DAY1", "time": "11600200"}},
            "record 2: query_time 0: time",
        ),
        ("egomemreason", {"query_time": "DAY7, 25:00:00"}, "line 2: query_time.*DAY7, 25:00:00"),
        ("egomemreason", {"options": {"A": "Pan", "C": "Cup"}}, "line 2: options.*A, C"),
        ("egomemreason", {"identity": "../A1"}, "leads out of the folder"),
        ("egomemreason", {"example_id": 7}, "'7' comes twice"),
    ],
)
def test_wrong_ones_are_told(tmp_path: Path, name: str, more: dict[str, Any], output: str) -> None:
    file, (*rows, last) = WRONG[name]
    with pytest.raises(InputError, match=output):
        read(name, lay(tmp_path, {file: [*rows, {**last, **more}]}))


def answered(dataset: str, *arms: str) -> Any:
    """The report of a run with an answer in each of these arms."""
    return SimpleNamespace(
        run=SimpleNamespace(name="run", settings=SimpleNamespace(dataset=dataset)),
        questions=[SimpleNamespace(arm=a, id=str(n), option="A") for n, a in enumerate(arms)],
    )


@pytest.mark.parametrize(
    ("name", "output"), [("egolifeqa", "no leaderboard"), ("egomemreason", "no option yet")]
)
def test_nothing_is_written_if_none_can_submit(tmp_path: Path, name: str, output: str) -> None:
    with pytest.raises(InputError, match=output):
        write_submissions(tmp_path / "answers", answered(name))
    assert not (tmp_path / "answers").exists()


def test_arms_whose_names_differ_in_odd_characters_have_own_files(tmp_path: Path) -> None:
    arms = ("homer, local", "homer local", "other")
    written = write_submissions(tmp_path, answered("egomemreason", *arms))
    found = [one.file.name for one in written]
    assert found == ["run-homer-local.json", "run-homer-local-2.json", "run-other.json"]
    for number, one in enumerate(written):
        assert json.loads(one.file.read_text())[0]["example_id"] == number


def test_mm_lifelong_is_three_videos_on_clocks_of_their_own(tmp_path: Path) -> None:
    day = {**LIFELONG, "index": 5, "total_intervals": [[10, 20]]}
    files = {
        "month/train.json": [LIFELONG],
        "month/val.json": [LIFELONG],
        "day/test.json": [day],
        "week/test.json": [day],
        "videos/day/0.mp4": None,
        "videos/month.mp4": None,
    }
    found = read("mm-lifelong", lay(tmp_path, files))
    output = [one.id for one in found.questions]
    assert output == ["month-train-0", "month-val-0", "day-test-5", "week-test-5"]
    first = found.questions[0]
    assert first.types == ("month-train", "Event Recognition")
    # A clue that ends before it starts is left out.
    assert first.spans == (TimeSpan.of(105_826_630, 105_834_130),)
    assert first.as_of_ms is None
    there = {video.name: video.file is not None for video in found.videos}
    assert there == {"day": True, "week": False, "month": True}
