"""NExT-QA in the authors' tables and as captions with questions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from domain.errors import InputError
from evals.datasets import read
from tests.support.datasets import NEXT, lay

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


@pytest.mark.parametrize(
    ("more", "output"),
    [
        ({"answer": 5}, "none of the options"),
        ({"video": "../x"}, "leads out of the folder"),
        ({"options": ["one"]}, "options"),
    ],
)
def test_a_wrong_record_is_reported(tmp_path: Path, more: dict[str, Any], output: str) -> None:
    with pytest.raises(InputError, match=output):
        read("nextqa", lay(tmp_path, {"questions.json": [NEXT | more]}))
