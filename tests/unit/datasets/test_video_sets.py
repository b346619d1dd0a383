"""M3-Bench, NExT-QA and sets that are asked about whole videos."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from domain.errors import InputError
from domain.time import TimeSpan
from evals.datasets import read
from evals.datasets.films import spans, split_options
from tests.support.datasets import (
    EGOSCHEMA,
    HIPPO,
    LONGVIDEO,
    LVBENCH,
    NEXT,
    PARQUET,
    ROBOT_QA,
    WEB,
    lay,
    mme,
    robot,
)


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
    assert video.file == tmp_path / "data/tube601.mp4"
    assert video.url == "https://www.youtube.com/watch?v=tube601"


def test_letters_stay_where_they_are_no_labels(tmp_path: Path) -> None:
    plain = ["A. One", "Two", "C. Three", "D. Four"]
    (tmp_path / "one").mkdir()
    folder = lay(tmp_path / "one", {PARQUET: [mme("001", "short", options=plain)]})
    assert read("video-mme", folder).questions[0].options == tuple(plain)


def test_lvbench_has_its_options_in_the_question(tmp_path: Path) -> None:
    files = {"data/video_info.meta.jsonl": LVBENCH, "all_videos/Key_1234567.mkv": None}
    found = read("lvbench", lay(tmp_path, files))
    (asked,), (video,) = found.questions, found.videos
    assert (asked.id, asked.question) == ("17", "What is on the sign?")
    assert asked.options == ("A fox", "A hen", "1636", "Nothing")
    assert (asked.answer, len(asked.types)) == ("B", 2)
    assert asked.spans == (TimeSpan.of(15_000, 3_739_000),)
    assert asked.as_of_ms is None
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
    assert open_.as_of_ms is None
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
    assert asked.as_of_ms is None
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
    assert first.as_of_ms is None
    assert first.spans == (TimeSpan.of(186_900, 187_900),)
    assert (second.id, second.spans) == ("2", ())
    assert [video.file for video in found.videos] == [tmp_path / "videos/vlog_1.webm"]


def test_options_of_hippovlog_go_by_letters(tmp_path: Path) -> None:
    mixed = {**HIPPO, "options": dict(reversed(HIPPO["options"].items()))}
    found = read("hippovlog", lay(tmp_path, {"questions.jsonl": [mixed]})).questions[0].options
    assert found == ("Red", "Blue", "None", "Both")
    odd = {**HIPPO, "options": {"A": "Red", "C": "Blue"}}
    with pytest.raises(InputError, match=r"questions\.jsonl, line 1: options: .*A, C"):
        read("hippovlog", lay(tmp_path, {"questions.jsonl": [odd]}))


def _asked(folder: Path, **more: Any) -> Any:
    qa = {key: value for key, value in {**ROBOT_QA, **more}.items() if value != "gone"}
    return read("m3-robot", lay(folder, {"robot.json": {"hall_01": robot([qa])}})).questions[0]


def test_a_question_of_the_robot_is_read(tmp_path: Path) -> None:
    asked = _asked(tmp_path)
    assert (asked.id, asked.video) == ("hall_01_Q01", "hall_01")
    assert (asked.question, asked.answer) == ("Where is the kettle?", "On the shelf.")
    assert asked.types == ("Human Understanding", "Cross-Modal Reasoning")
    assert asked.options == ()


@pytest.mark.parametrize(
    ("more", "as_of_ms"),
    [
        ({"before_clip": 0}, 30_000),
        ({"before_clip": 31, "timestamp": "16:10"}, 960_000),
        ({"before_clip": -1}, 0),
        ({"before_clip": "gone"}, 310_000),
        ({"before_clip": None, "timestamp": "1:00:05"}, 3_605_000),
        ({"before_clip": 2, "timestamp": "soon"}, 90_000),
    ],
)
def test_clips_up_to_named_are_known(tmp_path: Path, more: dict[str, Any], as_of_ms: int) -> None:
    assert _asked(tmp_path, **more).as_of_ms == as_of_ms


def test_the_web_is_asked_after_its_end(tmp_path: Path) -> None:
    found = read("m3-web", lay(tmp_path, {"data/annotations/web.json": WEB}))
    assert [one.as_of_ms for one in found.questions] == [None]
    assert found.videos[0].url == "https://www.youtube.com/watch?v=abc-_123XYZ"


@pytest.mark.parametrize(
    "place", ["data/videos/robot/hall_01.mp4", "videos/robot/hall_01.mp4", "hall_01.mp4"]
)
def test_a_video_lies_as_in_the_release_or_beside(tmp_path: Path, place: str) -> None:
    folder = lay(tmp_path, {"robot.json": {"hall_01": robot([ROBOT_QA])}, place: None})
    assert read("m3-robot", folder).videos[0].file == tmp_path / place


TABLE: dict[str, Any] = {
    "video": 3238737531,
    "frame_count": 341,
    "width": 640,
    "height": 480,
    "question": "what did the man do after he sat down",
    "answer": 4,
    "qid": 7,
    "type": "TN",
    **{f"a{n}": f"choice {n}" for n in range(5)},
}


def test_a_table_of_the_authors_is_read(tmp_path: Path) -> None:
    lay(tmp_path, {"val.csv": [TABLE], "map_vid_vidorID.json": {"3238737531": "1164/3238737531"}})
    lay(tmp_path, {"NExTVideo/1164/3238737531.mp4": None})
    found = read("nextqa", tmp_path)
    (asked,), (video,) = found.questions, found.videos
    assert (asked.id, asked.answer) == ("3238737531_7", "E")
    assert asked.types == ("temporal", "TN")
    assert asked.options == tuple(f"choice {n}" for n in range(5))
    assert video.file == tmp_path / "NExTVideo/1164/3238737531.mp4"
    assert (video.captions, video.among) == (None, False)


def test_the_second_form_is_read_with_captions_of_many_videos(tmp_path: Path) -> None:
    lay(tmp_path, {"questions.json": {"questions": [NEXT]}, "captions.jsonl": [{}]})
    found = read("nextqa", tmp_path)
    (asked,), (video,) = found.questions, found.videos
    assert (asked.id, asked.answer, asked.types) == ("3238737531_4", "C", ("causal", "CW"))
    assert (video.captions, video.among) == (tmp_path / "captions.jsonl", True)
