"""Options over short captioned videos are compared as doings, and over nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.search import OptionSupport
from retrieval.heuristics.captioned_options import SHORT, is_captioned, option_actions, subject_of
from retrieval.options import supports
from retrieval.ranking import CandidateLines, PreparedQuestion, relevance
from tests.support.remembered import WordEmbedder
from tests.support.story import found_at, found_of, prepared, roster_of, vectors_of, video_of

YARD = [["A boy and a dog play in a yard"] * 4 + ["The boy throws a ball", "The dog barks"]] * 3
ASKED = prepared("why did the boy run away?", ("catch the ball", "eat lunch"))


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
def test_whom_a_question_is_about(question: str, who: str) -> None:
    assert subject_of(question) == who


@given(st.text(max_size=200), st.lists(st.text(max_size=20), max_size=4))
def test_any_question_has_a_doing_for_each_option(question: str, options: list[str]) -> None:
    found = option_actions(question, tuple(options))
    assert len(found) == len(options)
    assert all(option.strip() in one for option, one in zip(options, found, strict=True))


def compared(found: CandidateLines, asked: PreparedQuestion) -> bool:
    return is_captioned(found.lines, asked, roster_of(found))


def test_captions_of_a_few_clips_are_compared_with_doings() -> None:
    assert compared(found_of(YARD), ASKED)


@pytest.mark.parametrize(
    ("found", "asked"),
    [
        (found_of(YARD), prepared("why did the boy run away?")),
        (found_of(YARD * SHORT), ASKED),
        (found_of([["I take the ball", "My dog barks"]] * 3), ASKED),
        (found_at(2, video_of(YARD, speakers=dict.fromkeys(YARD[0], "Ann"))), ASKED),
        (found_of(YARD), prepared("when was it?", ("two hours ago", "yesterday"))),
    ],
    ids=["no options", "a long video", "somebody narrates", "talk", "times"],
)
def test_other_views_and_options_are_ranked_as_ever(
    found: CandidateLines, asked: PreparedQuestion
) -> None:
    assert not compared(found, asked)


def test_options_that_are_people_are_ranked_as_ever() -> None:
    said = {"Ann is here": "Ann", "Bob is here": "Bob"}
    found = found_at(2, video_of([[*YARD[0], *said]] * 3, speakers=said))
    assert compared(found, ASKED)
    assert not compared(found, prepared("who threw the ball?", ("Ann", "Bob")))


def supported(
    found: CandidateLines, asked: PreparedQuestion, *, as_doings: bool = True
) -> tuple[OptionSupport, ...]:
    vectors = vectors_of(asked)
    if as_doings:
        said = WordEmbedder().embed(option_actions(asked.text, asked.options))
        vectors = replace(vectors, actions=said)
    return supports(found, asked, relevance(found, asked, vectors))


def best(found: tuple[OptionSupport, ...]) -> str:
    return max(found, key=lambda one: one.share).text


def test_what_comes_all_the_time_is_what_is_done() -> None:
    """A clip that stands out says nothing where a scene is told second after second."""
    story = [["The lady holds a pan"] * 6 for _ in range(3)]
    story[1] += ["A red table and a microphone of the lady", "A red table"]
    asked = prepared(
        "what does the lady do after taking the microphone?", ("red table", "hold a pan")
    )
    found = found_of(story)
    assert best(supported(found, asked)) == "hold a pan"
    assert best(supported(found, asked, as_doings=False)) != "hold a pan"


def test_shares_are_of_all_options() -> None:
    support = supported(found_of(YARD), ASKED)
    assert sum(one.share for one in support) == pytest.approx(1)
    assert support[0].share > support[1].share
