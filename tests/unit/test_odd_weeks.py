"""Files of EgoLife questions: any file is questions that can be judged, or a refusal by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from domain.errors import InputError
from evals.egolife_questions import read_ego_questions

GOOD: dict[str, Any] = {
    "id": "1",
    "type": "TaskMaster",
    "question": "What was bought?",
    "options": ["Bread", "Milk"],
    "answer": "A",
    "as_of": {"day": 2, "second": 10},
    "targets": [{"day": 1, "start": 0, "end_day": 1, "end": 29}],
}


def written(folder: Path, text: str) -> Path:
    path = folder / "questions.json"
    path.write_text(text, encoding="utf-8")
    return path


def changed(place: str, field: str, number: str) -> str:
    row = json.loads(json.dumps(GOOD))
    (row[place][0] if place == "targets" else row[place])[field] = "NUMBER"
    return json.dumps([row]).replace('"NUMBER"', number)


@pytest.mark.parametrize("number", ["0", "-1", "367", "1.5", "1" + "0" * 50])
@pytest.mark.parametrize(
    ("place", "field"), [("as_of", "day"), ("targets", "day"), ("targets", "end_day")]
)
def test_no_day_is_refused_with_place(tmp_path: Path, place: str, field: str, number: str) -> None:
    path = written(tmp_path, changed(place, field, number))
    with pytest.raises(InputError, match=rf"questions\.0\.{place}.*{field}"):
        read_ego_questions(path)


def test_a_file_nested_beyond_reason_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no EgoLife questions"):
        read_ego_questions(written(tmp_path, "[" * 100_000))
