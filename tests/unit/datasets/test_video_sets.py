"""Sets that are asked about whole videos, after their end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from domain.errors import InputError
from domain.time import TimeSpan
from evals.datasets import read
from evals.datasets.films import spans, split_options
from tests.support.datasets import EGOSCHEMA, EXAMPLES, HIPPO, LONGVIDEO, LVBENCH, PARQUET, lay, mme


def test_video_mme_is_parted_by_length(tmp_path: Path) -> None:
    rows = [mme("001", "short"), mme("301", "medium"), mme("601", "long")]
    folder = lay(tmp_path, {PARQUET: rows, "data/tube601.mp4": None})
    assert [one.video for one in read("video-mme", folder).questions] == ["001", "301", "601"]
    found = read("video-mme-long", folder)
    (asked,), (video,) = found.questions, found.videos
    assert (asked.id, asked.video, asked.answer) == ("601-1", "601", "C")
    assert asked.options == ("One.", "Two.", "Three.", "Four.")
    assert asked.types == ("long", "Counting Problem")
    assert asked.as_of_ms is None
    assert (video.file, video.url) == (
        tmp_path / "data/tube601.mp4",
        "https://www.youtube.com/watch?v=tube601",
    )


def test_letters_stay_where_they_are_no_labels(tmp_path: Path) -> None:
    plain = ["A. One", "Two", "C. Three", "D. Four"]
    (tmp_path / "one").mkdir()
    folder = lay(tmp_path / "one", {PARQUET: [mme("001", "short", options=plain)]})
    assert read("video-mme", folder).questions[0].options == tuple(plain)


@pytest.mark.parametrize(
    ("more", "output"),
    [
        ({"duration": "endless"}, "record 1: duration: .*'short', 'medium' or 'long'"),
        ({"answer": "E"}, "record 1: the question: .*none of the options"),
        ({"videoID": None}, "record 1: videoID"),
        ({"videoID": "../tube"}, "record 1: '../tube' leads out of the folder"),
    ],
)
def test_wrong_video_mme_is_reported(tmp_path: Path, more: dict[str, Any], output: str) -> None:
    with pytest.raises(InputError, match=output):
        read("video-mme", lay(tmp_path, {PARQUET: [mme("001", "short") | more]}))


def test_lvbench_has_its_options_in_the_question(tmp_path: Path) -> None:
    files = {"data/video_info.meta.jsonl": LVBENCH, "all_videos/Key_1234567.mkv": None}
    found = read("lvbench", lay(tmp_path, files))
    (asked,), (video,) = found.questions, found.videos
    assert (asked.id, asked.question) == ("17", "What is on the sign?")
    assert asked.options == ("A fox", "A hen", "1636", "Nothing")
    assert (asked.answer, len(asked.types)) == ("B", 2)
    assert asked.spans == (TimeSpan.of(15_000, 3_739_000),)
    assert video.file == tmp_path / "all_videos/Key_1234567.mkv"
    assert video.url.endswith("watch?v=Key_1234567")


@pytest.mark.parametrize(
    ("text", "question", "options"),
    [
        ("Who (A) or (B)?\n(A) Ann\n (B)  Bob\n", "Who (A) or (B)?", ("Ann", "Bob")),
        ("Who?\n(B) Bob\n(A) Ann", "Who?", ("Ann", "Bob")),
        ("Who?", "Who?", ()),
        ("Who?\r\n(A) Ann\r\n(B) Bob", "Who?", ("Ann", "Bob")),
    ],
)
def test_options_stand_on_own_lines(text: str, question: str, options: tuple[str, ...]) -> None:
    assert split_options(text) == (question, options)


@pytest.mark.parametrize(
    ("output", "found"),
    [
        ("00:15-00:19", [(15, 19)]),
        ("00:15 - 00:19, 1:00:00-1:00:01", [(15, 19), (3600, 3601)]),
        ("00:19-00:15", []),
        ("all of it", []),
        ("٣:١٥-٣:١٩", []),
        ("", []),
    ],
)
def test_stretches_that_can_be_read_are_stored(output: str, found: list[tuple[int, int]]) -> None:
    assert [(span.start_ms / 1000, span.end_ms / 1000) for span in spans(output)] == found


def test_egoschema_keeps_most_answers_to_itself(tmp_path: Path) -> None:
    folder = lay(tmp_path, {**EGOSCHEMA, "videos/0002-b.mp4": None})
    secret, open_ = read("egoschema", folder).questions
    assert (secret.id, secret.answer, open_.id, open_.answer) == ("0001-a", "", "0002-b", "D")
    assert open_.options == ("Doing 0.", "Doing 1.", "Doing 2.", "Doing 3.", "Doing 4.")
    subset = read("egoschema-subset", folder)
    assert [one.id for one in subset.questions] == ["0002-b"]
    assert [video.file for video in subset.videos] == [tmp_path / "videos/0002-b.mp4"]


@pytest.mark.parametrize("answers", [{"0002-b": 5}, {"0002-b": "D"}, [3]])
def test_an_answer_of_egoschema_is_an_option(tmp_path: Path, answers: Any) -> None:
    with pytest.raises(InputError, match=r"subset_answers\.json"):
        read("egoschema", lay(tmp_path, {**EGOSCHEMA, "subset_answers.json": answers}))


def test_longvideobench_is_read(tmp_path: Path) -> None:
    folder = lay(tmp_path, {"lvb_val.json": [LONGVIDEO], "videos/vid_1.mp4": None})
    found = read("longvideobench", folder)
    (asked,), (video,) = found.questions, found.videos
    assert (asked.id, asked.video, asked.answer) == ("vid_1_0", "vid_1", "E")
    assert asked.types == ("up to 600 s", "S2E")
    assert video.file == tmp_path / "videos/vid_1.mp4"


def test_the_test_of_longvideobench_has_no_answers(tmp_path: Path) -> None:
    row = {key: value for key, value in LONGVIDEO.items() if key != "correct_choice"}
    folder = lay(tmp_path, {"lvb_test_wo_gt.json": [row]})
    assert read("longvideobench-test", folder).questions[0].answer == ""


def test_hippovlog_has_no_ids_so_lines_are_counted(tmp_path: Path) -> None:
    heard = {**HIPPO, "category": "audio", "segment_info": {"timestamp": 110.5}}
    del heard["frame_info"]
    folder = lay(tmp_path, {"questions.jsonl": [HIPPO, heard], "videos/vlog_1.webm": None})
    found = read("hippovlog", folder)
    first, second = found.questions
    assert (first.id, first.answer, first.types) == ("1", "D", ("visual",))
    assert first.options == ("Red", "Blue", "None", "Both")
    assert first.spans == (TimeSpan.of(186_900, 187_900),)
    assert (second.id, second.spans) == ("2", ())
    assert [video.file for video in found.videos] == [tmp_path / "videos/vlog_1.webm"]


def test_options_of_hippovlog_go_by_letters(tmp_path: Path) -> None:
    mixed = {**HIPPO, "options": dict(reversed(HIPPO["options"].items()))}
    assert read("hippovlog", lay(tmp_path, {"questions.jsonl": [mixed]})).questions[0].options == (
        "Red",
        "Blue",
        "None",
        "Both",
    )
    odd = {**HIPPO, "options": {"A": "Red", "C": "Blue"}}
    with pytest.raises(InputError, match=r"questions\.jsonl, line 1: options: .*A, C"):
        read("hippovlog", lay(tmp_path, {"questions.jsonl": [odd]}))


@pytest.mark.parametrize("name", ["lvbench", "longvideobench", "hippovlog", "egoschema"])
def test_they_are_asked_after_the_end(tmp_path: Path, name: str) -> None:
    found = read(name, lay(tmp_path, EXAMPLES[name]))
    assert {one.as_of_ms for one in found.questions} == {None}
