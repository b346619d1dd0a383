"""What evaluations measure of answers, what must be reached, and the baseline beside it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from agent.harness.verify_and_correct import harness_search
from domain.asking import Action, Answer, Citation, Question, Subtask
from domain.evaluation import AnswerUsage, Verdict
from domain.memories import MemoryView, Scope
from domain.time import TimeSpan
from domain.trajectory import Acted, Ended, Event, Guarded, ModelCalled, QuestionAsked, RoundOpened
from evals.baseline import RETRIEVED, Baseline, Plain, WordBaseline
from evals.clips import clip_row, conduct, conduct_bars, kind_row
from evals.dataset import Conditions, EvalQuestion, QuestionSet
from evals.datasets.specifications import read_set
from evals.measuring import Answered
from evals.statistics import figure
from evals.tables import Bar, Row
from evals.week import scored, week_bars, week_row
from models.profile import load_profile
from retrieval.terms import terms
from store.queries.evaluations import Result
from store.queries.memories import ClipText
from tests.support.evaluation_rows import slot
from tests.support.machine import VIDEO, search

OPTIONS = ("yes", "no")
AXES = ("gate", "piano", "rain")


def told(text: str, *cited: tuple[float, float], **more: Any) -> Answer:
    spans = (TimeSpan.of(round(1000 * a), round(1000 * b)) for a, b in cited)
    found = (Citation(ref=f"m{n}", video=VIDEO, span=s, text="x") for n, s in enumerate(spans, 1))
    return Answer(text=text, citations=tuple(found), **({"confidence": 0.9} | more))


def answered(
    right: bool | None, answer: Answer | None = None, top: bool | None = None, **more: Any
) -> Answered:
    given = {"id": "1", "video": "clip", "question": "Who?"} | more
    verdict = Verdict(right=right, judge="options", top=top)
    result = Result(
        slot("1", VIDEO), "t", "done", verdict, None, AnswerUsage(rounds=2, seconds=0.5)
    )
    return Answered(EvalQuestion.model_validate(given), result, answer)


@pytest.mark.parametrize(
    ("conditions", "answer", "is_right"),
    [
        (Conditions(words=("two|2",)), told("2 voices"), True),
        (Conditions(words=("two", "Ann")), told("two of them"), False),
        (Conditions(number=(5, 7)), told("[00:02-00:04] about six people"), True),
        (Conditions(number=(5, 7)), told("4 people and 6 dogs"), False),
        (Conditions(spans_s=((10, 20),)), told("x", (0, 1), (19, 25)), True),
        (Conditions(top_s=((10, 20),)), told("x", (0, 1), (19, 25)), False),
        (Conditions(every_s=((0, 2), (10, 20))), told("x", (0, 1), (19, 25)), True),
        (Conditions(every_s=((0, 2), (10, 20))), told("x", (0, 1)), False),
        (Conditions(declined=True), told("", not_in_memory=True), True),
        (Conditions(declined=True), told("red", (0, 1)), False),
        (Conditions(words=("red",)), told("", not_in_memory=True), False),
        (Conditions(words=("red",), declined=True), told("", not_in_memory=True), True),
        (Conditions(words=("red",), declined=True), told("a red one", (0, 1)), True),
        (Conditions(words=("red",), declined=True), told("a blue one", (0, 1)), False),
    ],
)
def test_an_answer_is_right_where_all_that_is_marked_holds(
    conditions: Conditions, answer: Answer, is_right: bool
) -> None:
    assert conditions.met_by(answer) is is_right


@pytest.mark.parametrize(("name", "count"), [(QuestionSet.FIRST, 40), (QuestionSet.SEEN, 20)])
def test_the_sets_hold_questions_that_can_be_judged(name: QuestionSet, count: int) -> None:
    asked = read_set(name, Path()).questions
    assert len({one.id for one in asked}) == len(asked) == count
    for one in asked:
        assert one.types, one.id
        assert one.answer if one.options else one.right not in (None, Conditions()), one.id
        assert all(re.compile(word) for word in (one.right.words if one.right else ()))


def test_figures_tell_right_declined_wrong_and_wrong_with_high_confidence() -> None:
    answers = [
        answered(True, told("yes")),
        answered(True, told("", not_in_memory=True)),
        answered(False, told("yes")),
        answered(False, told("yes", confidence=0.1)),
        answered(False),
    ]
    row = kind_row("who", answers)
    assert (row.questions, *row.figures.values()) == (5, 1, 1, 3, 1)


def test_a_row_counts_choices_apart_from_open_questions() -> None:
    spans = {"spans": (TimeSpan.of(0, 9),)}
    choice = answered(True, told("x"), top=False, options=("a", "b"), **spans)
    free, unmarked = answered(None, told("x"), top=True, **spans), answered(None)
    row = clip_row("all", [choice, free, unmarked])
    shares = {name: row.figures[name] for name in ("cited", "right", "chance")}
    assert shares == {"cited": figure([0, 1]), "right": figure([1]), "chance": figure([0.5])}
    assert (row.questions, row.figures["choices"], row.figures["rounds"]) == (3, 1, 2)
    assert clip_row("open", [free]).figures["right"] is None


@pytest.mark.parametrize(
    ("value", "most", "met"),
    [(10, False, True), (9.9, False, False), (10, True, True), (10.1, True, False)],
)
def test_a_bar_is_met_at_its_limit_and_on_its_side(value: float, most: bool, met: bool) -> None:
    assert Bar("figure", value, 10, most=most).met is met


def test_found_moments_are_laid_against_what_is_marked_on_a_grid_of_30_seconds() -> None:
    def at(*seconds: tuple[float, float]) -> list[TimeSpan]:
        return [TimeSpan.of(round(1000 * a), round(1000 * b)) for a, b in seconds]

    asked = answered(True, spans=tuple(at((30, 59), (95, 96)))).question
    output = scored(asked, True, at((30, 60), (300, 330), (300, 330), (95, 96)))
    assert output == (
        {"right": True, "top 1": True, "top 3": True, "top 10": True, "IoU": pytest.approx(1 / 3)}
    )
    found = scored(asked, False, at((0, 30), (60, 90), (120, 150), (95, 96)))
    assert [found[f"top {top}"] for top in (1, 3, 10)] == [False, False, True]
    assert found["IoU"] == scored(asked, False, [])["IoU"] == 0


def reached(
    right: float, top: float, iou: float, took: float | None = None, ask_s: float = 60
) -> set[str]:
    """Names of the bars that such results miss, beside a baseline of 30, 10 and 4 percent."""

    def row(*shares: float) -> Row:
        names = ("right", "top 3", "IoU")
        figures = {name: figure([one / 100]) for name, one in zip(names, shares, strict=True)}
        return Row("x", 250, figures | {"seconds": ask_s})

    bars = week_bars(row(right, top, iou), row(30, 10, 4), 250, took)
    return {bar.name.split(",")[0] for bar in bars if not bar.met}


def test_a_week_must_beat_the_baseline_in_all_three_ways_and_in_time() -> None:
    assert reached(36.1, 15.1, 6.1) == set()
    assert reached(35.9, 15.1, 6.1) == {"accuracy"}
    assert reached(36.1, 14.9, 6.1) == {"target in top 3"}
    assert reached(36.1, 15.1, 5.9) == {"temporal IoU"}
    assert reached(36.1, 15.1, 6.1, took=901) == {"import"}
    assert reached(36.1, 15.1, 6.1, took=899, ask_s=601) == {"asking"}


def test_ratios_to_a_baseline_that_finds_nothing_are_not_met_by_chance() -> None:
    nothing = week_row("x", [])
    ours = replace(nothing, figures={**nothing.figures, "seconds": None})
    assert not all(bar.met for bar in week_bars(ours, nothing, 0, None))


def asked(options: tuple[str, ...] = OPTIONS) -> QuestionAsked:
    question = Question(text="Is it so?", videos=(VIDEO,), options=options)
    view = MemoryView(scopes=(Scope(video=VIDEO, last_clip=1),))
    return QuestionAsked(
        question=question, machine="homer", version=1, profile="small", reasoner="llm", view=view
    )


def ended(option: str | None) -> Ended:
    answer = Answer(text="yes", option=option, confidence=0.5)
    return Ended(state="done", why="so", answer=answer, rounds=1, tokens=0)


def tried(number: int, *accepted: bool, action: Action | None = None) -> list[Event]:
    """A round with so many tries, each accepted or refused."""
    events: list[Event] = [RoundOpened(round=number, subtask="t1", text="x", attempt=1)]
    for at, good in enumerate(accepted):
        chosen = action or search("two words")
        events += [
            Acted(round=number, action=chosen, attempt=at),
            Guarded(round=number, accepted=good),
        ]
    return events


def test_a_round_counts_where_an_own_action_was_accepted_within_the_retries() -> None:
    by_harness = harness_search(Subtask(id="t1", text="what it is"), None, None, ())
    events: list[Event] = [
        asked(),
        *tried(1, True),
        *tried(2, False, False, True),
        *tried(3, False, False, False, True),
        *tried(4, True, action=by_harness),
        RoundOpened(round=5, subtask="t1", text="x", attempt=1),
        ModelCalled(purpose="act", model="m", request="r", tokens_in=70),
        ended("B"),
    ]
    made = conduct(events, retries=2)
    assert (made["rounds"], made["valid"]) == (4, 2)
    assert (made["answers"], made["choices"], made["options"], made["tokens_in"]) == (1, 1, 1, 70)


@pytest.mark.parametrize(
    ("options", "option", "counts"),
    [(OPTIONS, "C", (1, 0)), (OPTIONS, None, (1, 0)), ((), None, (0, 0)), (OPTIONS, "A", (1, 1))],
)
def test_a_choice_must_be_an_option(
    options: tuple[str, ...], option: str | None, counts: tuple[int, int]
) -> None:
    made = conduct([asked(options), ended(option)], retries=2)
    assert (made["choices"], made["options"]) == counts


def test_bars_say_what_is_missing() -> None:
    good = {"answers": 30, "rounds": 40, "valid": 38, "citations": 9, "resolved": 9}
    assert all(bar.met for bar in [*conduct_bars(good, 30), *conduct_bars({}, 0)])
    for missed in ({"answers": 29}, {"rounds": 41}, {"citations": 10}, {"choices": 1}):
        assert [bar.met for bar in conduct_bars(good | missed, 30)].count(False) == 1, missed


def test_a_model_in_this_process_is_known_as_such() -> None:
    assert load_profile("small").in_process
    assert not load_profile("openai").in_process
    assert not load_profile("local").in_process


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


def clip(number: int) -> TimeSpan:
    return TimeSpan.of(number * 10_000, (number + 1) * 10_000)


def test_clips_come_in_order_of_how_like_the_question_they_are() -> None:
    found = baseline("rain", "a piano in the rain", "the gate").answer("rain", ("gate",), None)
    assert found.retrieved == tuple(map(clip, (0, 1, 2)))


@pytest.mark.parametrize(
    ("as_of_ms", "option", "first"),
    [(9_999, "A", None), (10_000, "A", 0), (20_000, "B", 1), (None, "B", 1)],
)
def test_only_clips_that_have_ended_are_known(
    as_of_ms: int | None, option: str, first: int | None
) -> None:
    known = baseline("the rain", "the piano")
    found = known.answer("where is the piano", ("gate", "piano"), as_of_ms)
    assert found.retrieved[:1] == (() if first is None else (clip(first),))
    assert found.option == option


@given(st.lists(st.sampled_from(["gate", "piano", "rain", "gate rain", ""]), max_size=25))
def test_it_gives_each_clip_once_and_no_more_than_asked(texts: list[str]) -> None:
    found = baseline(*texts).answer("rain", ("gate", "piano"), None)
    assert len(found.retrieved) == len(set(found.retrieved)) == min(RETRIEVED, len(texts))
    assert found.option in "AB"


def word_baseline(*texts: str) -> WordBaseline:
    """Clips of ten seconds with these texts."""
    clips = [ClipText(n * 10_000, (n + 1) * 10_000, text) for n, text in enumerate(texts)]
    return WordBaseline(clips, [terms(text) for text in texts])


def test_words_that_few_clips_have_count_more() -> None:
    clips = word_baseline("Ann sings", "Ann paints a gate", "Ann cooks rice", "Ann sings")
    found = clips.answer("Who paints Ann?", ("by rice", "by gate"), None)
    assert (found.option, found.retrieved[0]) == ("B", clip(1))


@pytest.mark.parametrize(
    ("as_of_ms", "option", "first"),
    [(9_000, "A", ()), (10_000, "A", ()), (20_000, "B", (1,)), (30_000, "A", (2,))],
)
def test_words_of_clips_that_have_not_ended_are_unknown(
    as_of_ms: int, option: str, first: tuple[int, ...]
) -> None:
    clips = word_baseline("rain", "the piano is old", "a red piano, a red piano")
    found = clips.answer("the piano", ("red", "old"), as_of_ms)
    assert (found.option, found.retrieved[:1]) == (option, tuple(map(clip, first)))


@pytest.mark.parametrize("texts", [(), ("",), ("the", "of the"), ("rain",)])
def test_without_a_word_in_common_no_clip_is_found(texts: tuple[str, ...]) -> None:
    assert word_baseline(*texts).answer("the piano", ("gate", "the"), None) == Plain("A")
