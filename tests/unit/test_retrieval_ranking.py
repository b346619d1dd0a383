"""Ranking: the right line first, options by evidence, and nothing from after the view."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.heuristics.options import actor_lines, are_people, people_in_option
from retrieval.ranking import best_lines, line_scores, window_fits
from retrieval.relevance import standardise
from retrieval.signals import roster
from store.queries.search import StoredLine
from tests.support.full_suite import examples
from tests.support.ranking import shares
from tests.support.story import (
    Story,
    candidates_at,
    candidates_of,
    prepare_question,
    relevance_of,
    roster_of,
    row_of,
    video_of,
)

KITCHEN = [
    ["Ann bakes a cake", "Bob sings a song"],
    ["The oven is hot", "Bob washes the dishes"],
    ["A dog runs through the garden", "Ann laughs"],
    ["Ann throws a red ball", "The dog catches it"],
    ["They all drink tea", "Bob tells a story about Paris"],
]


def first(story: Story, text: str, *options: str) -> str:
    candidates, question = candidates_of(story), prepare_question(text, options)
    moment = best_lines(candidates, question, relevance_of(candidates, question), 5)[0]
    return row_of(candidates, moment.line).text


@pytest.mark.parametrize(
    ("question", "line"),
    [
        ("Who bakes the cake?", "Ann bakes a cake"),
        ("What did Bob wash?", "Bob washes the dishes"),
        ("Which ball did Ann throw?", "Ann throws a red ball"),
        ("What is Bob's story about?", "Bob tells a story about Paris"),
    ],
)
def test_the_line_that_answers_comes_first(question: str, line: str) -> None:
    assert first(KITCHEN, question) == line


def test_an_option_ranks_its_evidence_first() -> None:
    question = "What happens?"
    assert first(KITCHEN, question, "The dog catches it", "Rain") == "The dog catches it"


def test_one_line_of_each_cell_is_ranked_best_first() -> None:
    candidates, question = (
        candidates_of(KITCHEN),
        prepare_question("What does Ann do with the dog?"),
    )
    moments = best_lines(candidates, question, relevance_of(candidates, question), 3)
    assert len(moments) == 3
    assert len({moment.cell for moment in moments}) == 3
    scores = [moment.score for moment in moments]
    assert scores == sorted(scores, reverse=True)


def test_superseded_lines_are_not_ranked() -> None:
    candidates, question = (
        candidates_at(9, video_of([["Ann sings", "Bob hums"]], gone={1: 0})),
        prepare_question("Ann sings"),
    )
    moments = best_lines(candidates, question, relevance_of(candidates, question), 9)
    lines = [row_of(candidates, moment.line).text for moment in moments]
    assert lines == ["Bob hums"]


def test_a_view_without_valid_lines_has_no_ranking() -> None:
    candidates, question = (
        candidates_at(9, video_of([["Ann sings"]], gone={1: 0})),
        prepare_question("Ann sings"),
    )
    assert best_lines(candidates, question, relevance_of(candidates, question), 9) == []


TEA_TWICE = [*([["Rain"]] * 20), ["Ann drinks tea"]] * 2 + [["Rain"]] * 20


def tea(text: str, as_of_clip: int | None = None) -> tuple[float, float]:
    """The scores of the first and the second time that tea is drunk."""
    question = prepare_question(text, as_of_s=None if as_of_clip is None else as_of_clip * 30.0)
    scores = relevance_of(candidates_of(TEA_TWICE), question).question
    return float(scores[20]), float(scores[41])


def test_recency_breaks_ties() -> None:
    earlier, later = tea("When did Ann last drink tea?", as_of_clip=62)
    assert later > earlier


def test_recency_does_not_count_for_questions_asked_afterwards() -> None:
    earlier, later = tea("When did Ann last drink tea?")
    assert later == pytest.approx(earlier, abs=1e-6)
    assert list(candidates_of(TEA_TWICE).lines.times[:2]) == [15, 45]


@pytest.mark.parametrize(("clips", "half", "fit"), [(1, 0, True), (11, 1, False), (12, 1, True)])
def test_words_are_counted_in_windows_shorter_than_the_view(
    clips: int, half: int, fit: bool
) -> None:
    assert window_fits(half, clips) is fit


def test_options_that_are_times_are_compared_with_video_time() -> None:
    day = 2880
    story: list[list[str]] = [[] for _ in range(2 * day)]
    story[day + 1000] = ["Ann drinks tea"]  # day 2, 08:20
    for clip in (300, 1800, day + 500, day + 1500):
        story[clip] = ["Rain"]
    candidates = candidates_of(story)
    question = prepare_question(
        "When did Ann drink tea?",
        ("Yesterday morning", "This morning", "Yesterday evening", "Last night"),
        as_of_s=(day + 1600) * 30.0,
    )
    assert question.timed
    best = int(shares(relevance_of(candidates, question)).argmax())
    assert question.options[best] == "This morning"


def test_a_temporal_expression_in_a_question_selects_the_cell() -> None:
    day = 2880
    story: list[list[str]] = [[] for _ in range(2 * day)]
    for clip in (1000, day + 1000):
        story[clip] = ["Ann drinks tea"]
        story[clip + 100] = ["Rain"]
    candidates = candidates_of(story)

    def best(text: str) -> int:
        question = prepare_question(text, as_of_s=(day + 2000) * 30.0)
        return int(relevance_of(candidates, question).question.argmax())

    assert best("Who drank tea yesterday morning?") == 0
    assert best("Who drank tea this morning?") == 2
    assert best("Who will drink tea tomorrow, as was planned yesterday?") == 2


# Options


def test_the_option_that_lines_support_has_the_larger_share() -> None:
    candidates = candidates_of(KITCHEN)
    question = prepare_question("What does the dog do?", ("It catches a ball", "It bakes a cake"))
    caught, baked = shares(relevance_of(candidates, question))
    assert caught > baked


def test_no_options_no_support() -> None:
    candidates, question = candidates_of(KITCHEN), prepare_question("Who sings?")
    scores_of = relevance_of(candidates, question)
    assert scores_of.support.shape[0] == 0
    assert line_scores(candidates, scores_of, candidates.lines.lines_of([0])).shape == (1, 2)


# People


def test_options_that_are_people_are_ranked_by_their_actions() -> None:
    story = [
        ["Tasha washes the dishes", "I cut the apple", "Tasha sings"],
        ["Lucia peels a potato", "I sit down", "Good morning"],
        ["Lucia reads", "I drink water", "Where is the cup", "Here it is"],
    ]
    said = {"Good morning": "Jake", "Where is the cup": "Jake", "Here it is": "Lucia"}
    candidates = candidates_of(story, speakers=said | {"Tasha sings": "Tasha"})
    assert roster_of(candidates).narrator == "Jake"
    question = prepare_question("Who washed the dishes?", ("Tasha", "Lucia", "Me"))
    scores_of = relevance_of(candidates, question)
    assert shares(scores_of).argmax() == 0
    question = prepare_question("Who cut the apple?", ("Tasha", "Lucia", "Me"))
    scores_of = relevance_of(candidates, question)
    assert (
        list((scores_of.support - scores_of.options).max(axis=1)).index(
            (scores_of.support - scores_of.options).max()
        )
        == 2
    )


def test_lines_belong_to_their_speaker_and_the_people_they_name() -> None:
    story = [["Tasha sings", "I sit down", "It rains", "Hello", "Bye"]]
    candidates = candidates_of(story, speakers={"Hello": "Jake", "Bye": "Tasha"})
    actors = actor_lines([row for _, row in candidates.lines.rows])

    def lines(name: str, *, narrator: bool = False) -> list[int]:
        own = actors.mask([name], narrator=narrator, speakers=["Jake", "Tasha"])
        return [int(number) for number in np.flatnonzero(own)]

    assert lines("Tasha") == [0, 4]
    assert lines("Jake") == [3]
    assert lines("Jake", narrator=True) == [1, 2, 3]
    assert lines("Nobody") == []


KNOWN = {"tasha": "Tasha", "lucia": "Lucia"}


@pytest.mark.parametrize(
    ("option", "people"),
    [
        ("Tasha", ("Tasha",)),
        ("tasha and Lucia.", ("Tasha", "Lucia")),
        ("Me", ("Jake",)),
        ("Tasha's", ("Tasha",)),
        ("Lucia and I", ("Lucia", "Jake")),
        ("a red cup", ()),
        ("Tasha put the cup on the table", ()),
        ("", ()),
    ],
)
def test_people_in_an_option_are_resolved(option: str, people: tuple[str, ...]) -> None:
    assert people_in_option(option, KNOWN, "Jake") == people


def test_me_is_nobody_without_a_narrator() -> None:
    assert people_in_option("Me", KNOWN, None) == ()


@pytest.mark.parametrize(
    ("options", "are"),
    [
        ([("A",), ("B",), ("C",), ()], True),
        ([("A",), ("B",), (), ()], False),
        ([("A",)], False),
        ([], False),
    ],
)
def test_options_that_are_people(options: list[tuple[str, ...]], are: bool) -> None:
    assert are_people(options) is are


def test_a_video_without_first_person_descriptions_has_no_narrator() -> None:
    lines = [
        StoredLine(1, 0, 0, 1, "episodic", "A man walks", "caption", None, None),
        StoredLine(2, 0, 1, 2, "episodic", "I am here", "said", "Ann", None),
    ]
    assert roster({"Ann": 1}, lines).narrator is None


# As of

words = st.sampled_from(["cake", "dog", "Ann", "runs", "red", "ball", "sings", "home", "tea"])
line = st.lists(words, min_size=1, max_size=4).map(" ".join)
stories = st.lists(st.lists(line, max_size=3), min_size=1, max_size=8)


@settings(max_examples=examples(20, 60), deadline=None)
@given(stories, stories, st.lists(words, min_size=1, max_size=3).map(" ".join), st.booleans())
def test_scores_as_of_a_clip_do_not_depend_on_later_clips(
    early: list[list[str]], late: list[list[str]], query: str, options: bool
) -> None:
    """The scores as of a clip are the same bits whether or not more was watched."""
    last = len(early) - 1
    question = prepare_question(
        query, ("a dog", "red cake") if options else (), as_of_s=len(early) * 30.0
    )
    then = candidates_at(last, video_of(early))
    after = candidates_at(last, video_of([*early, *late]))
    assert then.lines.cell_count == after.lines.cell_count
    if not then.lines.cell_count:
        return
    before, later = relevance_of(then, question), relevance_of(after, question)
    assert np.array_equal(before.question, later.question)
    assert np.array_equal(before.options, later.options)
    assert np.array_equal(before.support, later.support)
    assert best_lines(then, question, before, 9) == best_lines(after, question, later, 9)


def test_z_scores_of_large_arrays_are_accurate() -> None:
    values = np.random.default_rng(3).normal(5, 2, (2, 50_000)).astype(np.float32)
    mean, away = values.mean(dtype=np.float64), values.std(dtype=np.float64)
    assert standardise(values) == pytest.approx((values - mean) / away, abs=1e-4)
    assert standardise(values[:, :9]).shape == (2, 9)


def test_z_scores_have_zero_mean_and_unit_deviation() -> None:
    result = standardise(np.array([1.0, 2.0, 3.0, 10.0]))
    assert result.mean() == pytest.approx(0)
    assert result.std() == pytest.approx(1, abs=1e-3)
    assert list(standardise(np.array([4.0]))) == [0]
