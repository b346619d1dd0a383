"""Ranking of lines, options and evidence; whole sentences and names in results."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.people import Character
from retrieval.heuristics.options import actor_lines, are_people, people_in_option
from retrieval.lines import LineSet, line_set
from retrieval.people_in_query import line_text, text_for_reranker, view_people, with_names
from retrieval.ranking import best_lines
from retrieval.relevance import closeness_threshold, decayed, standardise
from retrieval.signals import roster
from retrieval.structure import complete_sentences
from store.queries.search import StoredLine
from tests.support.full_suite import examples
from tests.support.ranking import shares
from tests.support.remembered import CLIP_MS
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
TEA_TWICE = [*([["Rain"]] * 20), ["Ann drinks tea"]] * 2 + [["Rain"]] * 20
words = st.sampled_from(["cake", "dog", "Ann", "runs", "red", "ball", "sings", "home", "tea"])
line = st.lists(words, min_size=1, max_size=4).map(" ".join)
stories = st.lists(st.lists(line, max_size=3), min_size=1, max_size=8)
ADA = Character(number=2, name="Ada Lovelace", faces=(0,), voices=(1, 3))
NOBODY = Character(number=3, faces=(4,))


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
    assert first(KITCHEN, "What happens?", "The dog catches it", "Rain") == "The dog catches it"


def test_superseded_lines_are_not_ranked() -> None:
    candidates, question = (
        candidates_at(9, video_of([["Ann sings", "Bob hums"]], gone={1: 0})),
        prepare_question("Ann sings"),
    )
    moments = best_lines(candidates, question, relevance_of(candidates, question), 9)
    assert [row_of(candidates, moment.line).text for moment in moments] == ["Bob hums"]


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
    found = list((scores_of.support - scores_of.options).max(axis=1)).index(
        (scores_of.support - scores_of.options).max()
    )
    assert found == 2


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
    assert people_in_option(option, {"tasha": "Tasha", "lucia": "Lucia"}, "Jake") == people


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


def test_a_view_without_valid_lines_has_no_ranking() -> None:
    candidates, question = (
        candidates_at(9, video_of([["Ann sings"]], gone={1: 0})),
        prepare_question("Ann sings"),
    )
    assert best_lines(candidates, question, relevance_of(candidates, question), 9) == []


# Quoting


def talk(*lines: str, speaker: str = "Ann") -> LineSet:
    return candidates_of([list(lines)], speakers=dict.fromkeys(lines, speaker)).lines


def test_a_sentence_is_joined_from_its_lines() -> None:
    lines = talk("Hello.", "I thank Jeff and his team", "for the hospitality.", "Now to work.")
    assert complete_sentences(lines, 2) == (1, 2)


def test_a_short_sentence_is_quoted_with_the_next_line() -> None:
    lines = talk("Welcome.", "Have respected meetings.", "First, put the phones away.")
    assert complete_sentences(lines, 1) == (1, 2)


def test_sentences_are_not_joined_across_speakers_or_descriptions() -> None:
    lines = ["I think that", "so do I"]
    found = candidates_of([lines], speakers={"I think that": "Ann", "so do I": "Bob"}).lines
    assert complete_sentences(found, 0) == (0,)
    assert complete_sentences(candidates_of([lines]).lines, 0) == (0,)


def test_sentences_are_not_joined_across_a_pause() -> None:
    lines = ["I was going to say", "that we are late"]
    found = candidates_of([[lines[0]], [lines[1]]], speakers=dict.fromkeys(lines, "Ann")).lines
    assert complete_sentences(found, 0) == (0,)


def test_speech_and_its_subtitles_are_joined_separately() -> None:
    plain = candidates_of([["I thank Jeff", "Ich danke Jeff", "and his team.", "und seinem Team."]])
    pairs = zip(plain.lines.rows, ("said", "subtitle", "said", "subtitle"), strict=True)
    rows = [(0, row._replace(source=source)) for (_, row), source in pairs]
    lines = line_set(plain.lines.scopes, rows, plain.lines.arrays.vectors, CLIP_MS)
    assert complete_sentences(lines, 0) == (0, 2)
    assert complete_sentences(lines, 3) == (1, 3)


# Closeness


@given(st.floats(0, 1), st.lists(st.floats(-30, 30), min_size=1))
def test_scores_of_evidence_fall_from_the_closest(best: float, scores: list[float]) -> None:
    shown = decayed(best, sorted(scores, reverse=True))
    assert (shown[0], shown) == (best, sorted(shown, reverse=True))
    assert all(0 <= one <= 1 for one in shown)


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (
            StoredLine(1, 0, 0, 1, "episodic", "Hello", "said", "<voice_1>", None),
            "Ada Lovelace: Hello",
        ),
        (StoredLine(1, 0, 0, 1, "episodic", "Hello", "said", "<voice_7>", None), "Hello"),
        (StoredLine(1, 0, 0, 1, "episodic", "Hello", "said", "Bob", None), "Bob: Hello"),
        (
            StoredLine(1, 0, 0, 1, "episodic", "<face_0> and <face_9> meet", "seen", None, None),
            "Ada Lovelace and somebody meet",
        ),
    ],
)
def test_a_reranker_gets_names_and_no_tags(shown: StoredLine, text: str) -> None:
    assert text_for_reranker(shown, view_people({"v": [ADA]}).names("v")) == text


@pytest.mark.parametrize(("candidates", "score"), [(0, 0.25), (100, 0.35), (100_000, 0.5)])
def test_closeness_threshold_grows_with_the_number_of_lines(candidates: int, score: float) -> None:
    assert closeness_threshold(candidates) == pytest.approx(score)


# People


def line_of_answers(
    text: str, source: str = "said", speaker: str | None = None, kind: str = "episodic"
) -> StoredLine:
    return StoredLine(1, 0, 0, 1, kind, text, source, speaker, None)


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (line_of_answers("Hello", speaker="<voice_1>"), "Ada Lovelace: Hello"),
        (line_of_answers("Hello", speaker="<voice_9>"), "<voice_9>: Hello"),
        (line_of_answers("Hello", speaker="Bob"), "Bob: Hello"),
        (line_of_answers("Hello"), "Hello"),
        (line_of_answers("EXIT", "read"), "On screen: EXIT"),
        (line_of_answers("<face_0> is a poet", "read", kind="character"), "Ada Lovelace is a poet"),
        (line_of_answers("<face_0> waves at <face_4>", "seen"), "Ada Lovelace waves at <face_4>"),
    ],
)
def test_lines_are_shown_with_names(shown: StoredLine, text: str) -> None:
    assert line_text(shown, view_people({"v": [ADA, NOBODY]}).names("v")) == text


def test_an_unnamed_person_with_several_tags_is_shown_by_number() -> None:
    merged = Character(number=5, faces=(0,), voices=(1, 3), joined=(7, 8))
    names = view_people({"v": [merged, NOBODY]}).names("v")
    assert line_text(line_of_answers("<face_0> waves at <face_4>", "seen"), names) == (
        "<character_5> waves at <face_4>"
    )
    assert line_text(line_of_answers("Hello", speaker="<voice_3>"), names) == "<character_5>: Hello"
    assert line_text(line_of_answers("<character_7> is a poet", kind="character"), names) == (
        "<character_5> is a poet"
    )
    found = text_for_reranker(line_of_answers("<face_0> waves", speaker="<voice_1>"), names)
    assert found == "somebody waves"


def test_a_merged_number_belongs_to_the_merged_person() -> None:
    people = view_people({"v": [Character(number=2, name="Ada", faces=(0,), joined=(7,))]})
    assert with_names("<character_7> and <character_9>", people.names("v")) == (
        "Ada and <character_9>"
    )
    assert [one.character.number for one in people.named_in("Who is <character_7>?")] == [2]


def test_tags_of_one_video_name_nobody_in_another() -> None:
    both = view_people({"v": [ADA], "w": [NOBODY]})
    assert both.names("w") == {}
    assert with_names("<face_0>", both.names("v")) == "Ada Lovelace"


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("What does Ada Lovelace say?", [2]),
        ("what does ADA LOVELACE's voice say", [2]),
        ("What does Ada say?", [2]),
        ("what does ada say?", [2]),
        ("What does ada say?", []),
        ("What does Lovelace say?", [2]),
        ("What does Adamant say?", []),
        ("Where is <face_4>?", [3]),
        ("What does <character_2> do to <face_4>?", [2, 3]),
    ],
)
def test_people_in_a_query_are_resolved(query: str, numbers: list[int]) -> None:
    people = view_people({"v": [ADA, NOBODY]}).named_in(query)
    assert [one.character.number for one in people] == numbers


def test_a_part_of_two_names_is_ambiguous() -> None:
    people = view_people({"v": [ADA, Character(number=5, name="Bob Lovelace")]})
    assert people.named_in("Where is Lovelace?") == ()
    assert [one.character.number for one in people.named_in("Where is Bob?")] == [5]


@pytest.mark.parametrize("query", ["what will happen", "Will it rain?", "the other cup", "no will"])
def test_an_ordinary_word_is_no_name(query: str) -> None:
    will, other = Character(number=1, name="Will"), Character(number=2, name="Other")
    found = [one.character.number for one in view_people({"v": [will, other]}).named_in(query)]
    assert found == ([1] if "Will" in query else [])


def test_a_name_is_searched_with_its_tags() -> None:
    people = view_people({"v": [ADA]})
    tags = ["character_2", "face_0", "voice_1", "voice_3"]
    assert people.terms_of("Where does Ada sing?") == ["ada", "sing", *tags]
    assert people.terms_of("Who sings?") == ["sing"]
