"""M3-Bench: the robot's questions are asked as of the clip they name, the web's of the whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from domain.errors import InputError
from evals.datasets import read
from tests.support.datasets import ROBOT_QA, WEB, lay, robot


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


@pytest.mark.parametrize(
    ("more", "output"),
    [
        ({"before_clip": -2}, r"robot\.json, hall_01: qa_list\.0\.before_clip"),
        ({"before_clip": "gone", "timestamp": "soon"}, r"qa_list\.0: .*not a time"),
        ({"question_id": "gone"}, r"qa_list\.0\.question_id"),
        ({"question": ""}, "hall_01, hall_01_Q01: question"),
    ],
)
def test_what_is_wrong_has_its_place(tmp_path: Path, more: dict[str, Any], output: str) -> None:
    with pytest.raises(InputError, match=output):
        _asked(tmp_path, **more)


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
