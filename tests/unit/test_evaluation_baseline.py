"""The plain way to answer that evaluations compare with, and how answers of a batch are judged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from domain.errors import ModelError
from evals.asking import Batch, _collect, spans_of
from evals.baseline import EMBED_BATCH, RETRIEVED, Baseline, Plain, WordBaseline, _embedded
from evals.local import MediaQuestion, judge, split_by_presence
from evals.scores import Span
from graphs.batch import BatchResult
from retrieval.terms import terms
from store.queries.memories import ClipText

AXES = ("gate", "piano", "rain")


class Axes:
    """A vector has a place for each of three words; a text without any is nothing."""

    dimensions, name = len(AXES), "axes"
    languages: tuple[str, ...] = ()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.array([[float(axis in text) for axis in AXES] for text in texts], np.float32)
        rows = rows.reshape(-1, len(AXES))
        norms = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1)
        return np.asarray(rows / norms, np.float32)


def baseline(*texts: str) -> Baseline:
    """Clips of ten seconds with these texts."""
    clips = [ClipText(n * 10_000, (n + 1) * 10_000, text) for n, text in enumerate(texts)]
    return Baseline(clips, Axes().embed(texts), Axes())


def test_clips_come_in_order_of_how_like_the_question_they_are() -> None:
    found = baseline("rain", "a piano in the rain", "the gate").answer("rain", ("gate",), 30)
    assert found.retrieved == ((0, 10), (10, 20), (20, 30))


@pytest.mark.parametrize(
    ("as_of_s", "option", "first"),
    [(9.9, 0, None), (10, 0, (0, 10)), (20, 1, (10, 20)), (1e9, 1, (10, 20))],
)
def test_only_clips_that_have_ended_are_known(
    as_of_s: float, option: int, first: tuple[float, float] | None
) -> None:
    known = baseline("the rain", "the piano")
    found = known.answer("where is the piano", ("gate", "piano"), as_of_s)
    assert next(iter(found.retrieved), None) == first
    assert found.option == option


@given(st.lists(st.sampled_from(["gate", "piano", "rain", "gate rain", ""]), max_size=25))
def test_it_gives_each_clip_once_and_no_more_than_asked(texts: list[str]) -> None:
    found = baseline(*texts).answer("rain", ("gate", "piano"), 1e9)
    assert len(found.retrieved) == len(set(found.retrieved)) == min(RETRIEVED, len(texts))
    assert found.option in (0, 1)


def test_where_all_are_alike_the_earlier_one_is_first() -> None:
    assert baseline("gate", "gate", "gate").answer("gate", ("gate",), 30).retrieved[0] == (0, 10)


def word_baseline(*texts: str) -> WordBaseline:
    """Clips of ten seconds with these texts."""
    clips = [ClipText(n * 10_000, (n + 1) * 10_000, text) for n, text in enumerate(texts)]
    return WordBaseline(clips, [terms(text) for text in texts])


def test_words_that_few_clips_have_count_more() -> None:
    clips = word_baseline("Ann sings", "Ann paints a gate", "Ann cooks rice", "Ann sings")
    found = clips.answer("Who paints Ann?", ("by rice", "by gate"), 40)
    assert found.option == 1
    assert found.retrieved[0] == (10, 20)


@pytest.mark.parametrize(
    ("as_of_s", "option", "retrieved"),
    [(9, 0, ()), (10, 0, ()), (20, 1, ((10, 20),)), (29, 1, ((10, 20),)), (30, 0, ((20, 30),))],
)
def test_words_of_clips_that_have_not_ended_are_unknown(
    as_of_s: float, option: int, retrieved: tuple[Span, ...]
) -> None:
    clips = word_baseline("rain", "the piano is old", "a red piano, a red piano")
    found = clips.answer("the piano", ("red", "old"), as_of_s)
    assert (found.option, found.retrieved[:1]) == (option, retrieved)


@pytest.mark.parametrize("texts", [(), ("",), ("the", "of the"), ("rain",)])
def test_without_a_word_in_common_no_clip_is_found(texts: tuple[str, ...]) -> None:
    assert word_baseline(*texts).answer("the piano", ("gate", "the"), 1e9) == Plain(0, ())


@pytest.mark.parametrize(
    "steps",
    [[], [1], [EMBED_BATCH], [EMBED_BATCH, EMBED_BATCH + 1], [EMBED_BATCH, 2 * EMBED_BATCH]],
)
def test_texts_are_embedded_some_at_a_time_and_it_is_reported_how_far(steps: list[int]) -> None:
    output: list[tuple[int, int]] = []
    count = max(steps, default=0)
    parts = list(_embedded(Axes(), ["gate"] * count, lambda *far: output.append(far)))
    assert sum(map(len, parts)) == count
    assert output == [(step, count) for step in steps]


QUESTION = MediaQuestion(
    id="q1",
    video="talk.mp4",
    question="Where?",
    answer="Berlin",
    spans_s=((10, 20), (40, 50)),
    options=("Paris", "Berlin"),
)


def batch(**line: Any) -> Batch:
    output = {"citations": [], "rounds": 2, **line}
    return Batch({"q1": output}, {}, 1.0)


def span(start: float, end: float) -> dict[str, float]:
    return {"start_s": start, "end_s": end}


@pytest.mark.parametrize(
    ("cited", "hit"),
    [
        ([], False),
        ([span(12, 13)], True),
        ([span(0, 10)], False),
        ([span(20, 40)], False),
        ([span(0, 10.5)], True),
        ([span(45, 99)], True),
        ([span(0, 5), span(12, 13)], False),
    ],
)
def test_the_first_citation_must_overlap_a_marked_span(
    cited: list[dict[str, float]], hit: bool
) -> None:
    assert judge(QUESTION, batch(citations=cited)).cited is hit


@pytest.mark.parametrize(("option", "right"), [("B", True), ("A", False), (None, False)])
def test_an_option_is_right_by_its_letter(option: str | None, right: bool) -> None:
    assert judge(QUESTION, batch(option=option)).right is right


def test_an_open_question_is_neither_right_nor_wrong() -> None:
    output = QUESTION.model_copy(update={"options": ()})
    assert judge(output, batch(option="B")).right is None


def test_without_an_answer_nothing_is_right() -> None:
    found = judge(QUESTION, Batch({}, {"q1": "failed"}, 1.0))
    assert (found.cited, found.right, found.rounds, found.top) == (False, False, 0, None)


def test_answers_and_errors_are_stored_apart_and_each_is_reported() -> None:
    results = [
        BatchResult("a", {"answer": "x"}, None, 1, 2),
        BatchResult("b", None, ModelError("the model did not answer"), 2, 2),
    ]
    output: list[BatchResult] = []
    lines, errors = _collect(iter(results), output.append)
    assert lines == {"a": {"answer": "x"}}
    assert errors == {"b": "the model did not answer"}
    assert output == results


def test_spans_keep_the_order_of_the_line() -> None:
    line = {"retrieved": [span(5, 6), span(1, 2)]}
    assert spans_of(line, "retrieved") == [(5, 6), (1, 2)]


def test_questions_about_files_that_are_not_there_are_set_aside(tmp_path: Path) -> None:
    (tmp_path / "talk.mp4").write_bytes(b"film")
    (tmp_path / "folder.mp4").mkdir()
    names = ("talk.mp4", "gone.mp4", "folder.mp4", "gone.mp4", "talk.mp4")
    every = [QUESTION.model_copy(update={"video": name}) for name in names]
    there, absent = split_by_presence(every, tmp_path)
    assert [one.video for one in there] == ["talk.mp4", "talk.mp4"]
    assert absent == ("folder.mp4", "gone.mp4")


@pytest.mark.parametrize(
    ("given", "letter"),
    [
        ({}, "B"),
        ({"answer_option": "A"}, "A"),
        ({"answer": "Rome"}, ""),
        ({"options": ()}, ""),
        ({"answer": "Rome", "answer_option": "B"}, "B"),
    ],
)
def test_the_right_letter_is_the_one_that_is_marked_or_that_of_the_answer(
    given: dict[str, Any], letter: str
) -> None:
    found = QUESTION.model_copy(update=given)
    assert found.right == letter
    assert not found.is_right(None)
    assert found.chance == (1 / len(found.options) if found.options else 0)


@pytest.mark.parametrize("name", ["", ".", "..", "/etc/passwd", "../talk.mp4", "a/b.mp4"])
def test_a_video_is_named_by_its_file_name_alone(name: str) -> None:
    with pytest.raises(ValueError, match="by its file name alone"):
        MediaQuestion.model_validate(QUESTION.model_dump() | {"video": name})
