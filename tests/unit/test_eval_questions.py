"""Files of questions with known answers: what is read, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from domain.errors import InputError
from evals.asking import Batch
from evals.egolife import read_ego_questions
from evals.local import MediaQuestion, judge, read_media_questions, row, split_by_presence

EGO: dict[str, Any] = {
    "id": "7",
    "type": "EntityLog",
    "question": "Whose phone is on the table?",
    "options": ["Alice's", "Mine"],
    "answer": "B",
    "as_of": {"day": 2, "second": 100},
    "targets": [{"day": 1, "start": 86_390, "end_day": 2, "end": 5}],
}
MEDIA: dict[str, Any] = {
    "id": "talk-01",
    "video": "talk.mp4",
    "question": "What is the theme?",
    "answer": "Innovation",
    "spans_s": [[10, 20], [40, 45]],
    "options": ["Banking", "Innovation"],
    "answer_option": "B",
}


def written(folder: Path, data: Any) -> Path:
    path = folder / "questions.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return path


@pytest.mark.parametrize("whole", [[EGO], {"source": "a week", "questions": [EGO]}])
def test_a_week_is_read_as_a_list_or_with_its_source(tmp_path: Path, whole: Any) -> None:
    (found,) = read_ego_questions(written(tmp_path, whole))
    assert found.right == 1
    assert found.as_of.video_s == 86_500
    assert found.target == {2879, 2880}
    asked = found.to_batch_question("abc")
    assert (asked.id, asked.video, asked.as_of_s) == ("7", "abc", 86_500)
    assert asked.options == ("Alice's", "Mine")


@pytest.mark.parametrize(
    ("data", "output"),
    [
        ("not JSON", "no EgoLife questions"),
        ([], "questions"),
        ([EGO | {"as_of": {"day": 0, "second": 1}}], "as_of.day"),
        ([{**EGO, "answer": "first"}], "answer"),
        ("7", "no EgoLife questions"),
    ],
)
def test_what_is_no_week_of_questions_is_refused(tmp_path: Path, data: Any, output: str) -> None:
    with pytest.raises(InputError, match=output):
        read_ego_questions(written(tmp_path, data))


def test_missing_files_are_bad_input(tmp_path: Path) -> None:
    for read in (read_ego_questions, read_media_questions):
        with pytest.raises(InputError, match=r"gone\.json"):
            read(tmp_path / "gone.json")


def test_questions_about_media_are_read(tmp_path: Path) -> None:
    path = written(tmp_path, {"about": "clips", "questions": [MEDIA]})
    (found,) = read_media_questions(path)
    assert (found.video, found.right, found.chance) == ("talk.mp4", "B", 0.5)


@pytest.mark.parametrize("name", ["../talk.mp4", "/etc/passwd", "a/b.mp4", "", ".."])
def test_a_video_is_a_file_beside_the_questions_and_nowhere_else(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"questions\.0\.video"):
        read_media_questions(written(tmp_path, {"questions": [MEDIA | {"video": name}]}))


def test_the_right_option_is_known_by_letter_or_by_its_words() -> None:
    named = MediaQuestion.model_validate({**MEDIA, "answer_option": None})
    assert named.is_right("B")
    assert not named.is_right("A")
    assert not named.is_right(None)
    unknown = named.model_copy(update={"answer": "something else"})
    assert not unknown.is_right("A")


@pytest.mark.parametrize(
    ("span", "cited"),
    [((19, 25), True), ((20, 30), False), ((0, 10), False), ((44, 44), True), ((5, 50), True)],
)
def test_a_citation_counts_where_it_overlaps_a_marked_span(
    span: tuple[float, float], cited: bool
) -> None:
    assert MediaQuestion.model_validate(MEDIA).is_cited(span) is cited


def test_absent_videos_take_their_questions_with_them(tmp_path: Path) -> None:
    (tmp_path / "talk.mp4").touch()
    here = MediaQuestion.model_validate(MEDIA)
    gone = here.model_copy(update={"video": "gone.mp4"})
    present, absent = split_by_presence([here, gone, gone], tmp_path)
    assert present == [here]
    assert absent == ("gone.mp4",)


def line(option: str | None, *spans: tuple[float, float], rounds: int = 2) -> dict[str, Any]:
    cited = [{"start_s": start, "end_s": end, "text": ""} for start, end in spans]
    return {"option": option, "citations": cited, "rounds": rounds, "seconds": 0.5}


def test_the_first_citation_is_what_counts() -> None:
    question = MediaQuestion.model_validate(MEDIA)
    good = judge(question, Batch({"talk-01": line("B", (12, 14), (0, 1))}, {}, 1))
    late = judge(question, Batch({"talk-01": line("A", (0, 1), (12, 14))}, {}, 1))
    none = judge(question, Batch({}, {"talk-01": "no model"}, 1))
    assert (good.cited, good.right) == (True, True)
    assert (late.cited, late.right) == (False, False)
    assert (none.cited, none.right, none.top) == (False, False, None)


def test_a_row_counts_choices_apart_from_open_questions() -> None:
    choice = MediaQuestion.model_validate(MEDIA)
    free = choice.model_copy(update={"id": "talk-02", "options": (), "answer_option": None})
    batch = Batch({"talk-01": line("B"), "talk-02": line(None, (12, 13), rounds=6)}, {}, 1)
    every = row("all", [judge(choice, batch), judge(free, batch)])
    assert (every.questions, every.choices, every.accuracy, every.chance) == (2, 1, 100, 50)
    assert (every.cited, every.rounds) == (50, 4)
    alone = row("open", [judge(free, batch)])
    assert (alone.choices, alone.accuracy, alone.chance) == (0, None, None)
