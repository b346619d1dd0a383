"""Options over short captioned videos are compared as actions; over other views they are not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.heuristics.options import SHORT, is_captioned, option_actions, subject_of
from retrieval.ranking import CandidateLines, PreparedQuestion, relevance
from tests.support.ranking import shares
from tests.support.remembered import WordEmbedder
from tests.support.story import (
    candidates_at,
    candidates_of,
    prepare_question,
    roster_of,
    vectors_of,
    video_of,
)

YARD = [["A boy and a dog play in a yard"] * 4 + ["The boy throws a ball", "The dog barks"]] * 3
QUESTION = prepare_question("why did the boy run away?", ("catch the ball", "eat lunch"))


@pytest.mark.parametrize(
    ("question", "who"),
    [
        ("why did the boy in red run away?", "the boy"),
        ("what does the lady in black do after taking the microphone?", "the lady"),
        ("What did the dog do at the end of the video?", "the dog"),
        ("how does the old man react when the ball falls?", "the old man"),
        ("how do people cross the river?", "people"),
        ("where is this happening?", "this happening"),
        ("how many dogs are there?", "dogs"),
        ("who sings?", "sings"),
        ("after the game?", "after"),
        ("?", ""),
    ],
)
def test_the_subject_of_a_question_is_found(question: str, who: str) -> None:
    assert subject_of(question) == who


@given(st.text(max_size=200), st.lists(st.text(max_size=20), max_size=4))
def test_any_question_gives_an_action_for_each_option(question: str, options: list[str]) -> None:
    actions = option_actions(question, tuple(options))
    assert len(actions) == len(options)
    assert all(option.strip() in item for option, item in zip(options, actions, strict=True))


def is_compared_as_actions(candidates: CandidateLines, question: PreparedQuestion) -> bool:
    return is_captioned(candidates.lines, question, roster_of(candidates))


def test_captions_of_short_videos_are_compared_with_actions() -> None:
    assert is_compared_as_actions(candidates_of(YARD), QUESTION)


@pytest.mark.parametrize(
    ("candidates", "question"),
    [
        (candidates_of(YARD), prepare_question("why did the boy run away?")),
        (candidates_of(YARD * SHORT), QUESTION),
        (candidates_of([["I take the ball", "My dog barks"]] * 3), QUESTION),
        (candidates_at(2, video_of(YARD, speakers=dict.fromkeys(YARD[0], "Ann"))), QUESTION),
        (candidates_of(YARD), prepare_question("when was it?", ("two hours ago", "yesterday"))),
    ],
    ids=["no options", "a long video", "somebody narrates", "talk", "times"],
)
def test_other_views_and_options_are_ranked_by_z_scores(
    candidates: CandidateLines, question: PreparedQuestion
) -> None:
    assert not is_compared_as_actions(candidates, question)


def test_options_that_are_people_are_not_compared_as_actions() -> None:
    lines_by_speaker = {"Ann is here": "Ann", "Bob is here": "Bob"}
    candidates = candidates_at(
        2, video_of([[*YARD[0], *lines_by_speaker]] * 3, speakers=lines_by_speaker)
    )
    assert is_compared_as_actions(candidates, QUESTION)
    assert not is_compared_as_actions(
        candidates, prepare_question("who threw the ball?", ("Ann", "Bob"))
    )


def supported(
    candidates: CandidateLines, question: PreparedQuestion, *, as_actions: bool = True
) -> str:
    vectors = vectors_of(question)
    if as_actions:
        actions = WordEmbedder().embed(option_actions(question.text, question.options))
        vectors = replace(vectors, actions=actions)
    found = shares(relevance(candidates, question, vectors))
    return question.options[int(found.argmax())]


def test_the_action_in_most_captions_is_supported_most() -> None:
    """A clip that stands out says nothing where a scene is told second after second."""
    story = [["The lady holds a pan"] * 6 for _ in range(3)]
    story[1] += ["A red table and a microphone of the lady", "A red table"]
    question = prepare_question(
        "what does the lady do after taking the microphone?", ("red table", "hold a pan")
    )
    candidates = candidates_of(story)
    assert supported(candidates, question) == "hold a pan"
    assert supported(candidates, question, as_actions=False) != "hold a pan"
