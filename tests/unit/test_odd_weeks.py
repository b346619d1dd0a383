"""Files of EgoLife questions: any file is questions that can be judged, or a refusal by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import InputError
from evals.egolife import DAYS, DayTime, EgoQuestion, TargetSpan, read_ego_questions
from evals.scores import CELL_S, cells, cells_found, is_found, temporal_iou
from memory.captions import DAY_S

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


@pytest.mark.parametrize("number", ["Infinity", "1e999", "NaN", "-1", "1e6", "1" + "0" * 50])
@pytest.mark.parametrize(
    ("place", "field"), [("as_of", "second"), ("targets", "start"), ("targets", "end")]
)
def test_a_second_beyond_its_day_is_refused_with_its_place(
    tmp_path: Path, place: str, field: str, number: str
) -> None:
    path = written(tmp_path, changed(place, field, number))
    with pytest.raises(InputError, match=rf"no EgoLife questions: questions\.0\.{place}"):
        read_ego_questions(path)


@pytest.mark.parametrize("number", ["0", "-1", "367", "1.5", "1" + "0" * 50])
@pytest.mark.parametrize(
    ("place", "field"), [("as_of", "day"), ("targets", "day"), ("targets", "end_day")]
)
def test_a_day_that_is_none_is_refused_with_its_place(
    tmp_path: Path, place: str, field: str, number: str
) -> None:
    path = written(tmp_path, changed(place, field, number))
    with pytest.raises(InputError, match=rf"questions\.0\.{place}.*{field}"):
        read_ego_questions(path)


def test_a_file_nested_beyond_reason_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no EgoLife questions"):
        read_ego_questions(written(tmp_path, "[" * 100_000))


MOMENTS = st.builds(DayTime, day=st.integers(1, DAYS), second=st.integers(0, DAY_S))
QUESTIONS = st.builds(
    EgoQuestion,
    id=st.text(max_size=3),
    type=st.sampled_from(["EntityLog", "EventRecall"]),
    question=st.text(min_size=1, max_size=20),
    options=st.lists(st.text(max_size=5), min_size=2, max_size=26).map(tuple),
    answer=st.sampled_from("ABCZ"),
    as_of=MOMENTS,
    targets=st.lists(
        st.builds(
            TargetSpan,
            day=st.integers(1, 7),
            start=st.integers(0, DAY_S),
            end_day=st.integers(1, 7),
            end=st.integers(0, DAY_S),
        ),
        max_size=2,
    ).map(tuple),
)


@given(st.lists(QUESTIONS, min_size=1, max_size=3), st.booleans())
def test_questions_read_back_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, made: list[EgoQuestion], wrapped: bool
) -> None:
    rows = [one.model_dump(mode="json") for one in made]
    text = json.dumps({"source": "x", "questions": rows} if wrapped else rows)
    path = written(tmp_path_factory.mktemp("week"), text)
    assert read_ego_questions(path) == tuple(made)
    for one in made:
        asked = one.to_batch_question("v")
        assert (asked.video, asked.options) == ("v", one.options)
        assert asked.as_of_s == one.as_of.video_s


SPANS = st.lists(
    st.tuples(st.integers(0, 2000), st.integers(0, 200)).map(
        lambda pair: (float(pair[0]), float(pair[0] + pair[1]))
    ),
    max_size=6,
)


@given(SPANS, SPANS)
def test_a_moment_is_found_exactly_where_its_cells_meet_a_marked_one(
    retrieved: list[tuple[float, float]], marked: list[tuple[float, float]]
) -> None:
    target = cells(marked)
    first = is_found(retrieved, target, 1)
    assert first == bool(retrieved and cells_found(retrieved[0]) & target)
    found = [is_found(retrieved, target, top) for top in range(1, 8)]
    assert found == sorted(found)
    iou = temporal_iou(retrieved, target)
    assert 0 <= iou <= 1
    assert (iou > 0) == is_found(retrieved, target, 3)


@given(SPANS)
def test_all_of_a_span_lies_in_its_cells(spans: list[tuple[float, float]]) -> None:
    for start, end in spans:
        held = cells_found((start, end))
        assert {cell * CELL_S for cell in held} == {
            cell * CELL_S for cell in range(min(held), max(held) + 1)
        }
        assert min(held) * CELL_S <= start < (min(held) + 1) * CELL_S
        assert max(held) * CELL_S <= max(start, end - 1e-3) < (max(held) + 1) * CELL_S
        assert held <= cells([(start, end)])
