"""Whole sentences, closeness, and names of people in results."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.people import Character
from retrieval.heuristics.whole_sentences import complete_sentences
from retrieval.lines import LineSet, line_set
from retrieval.people_in_query import line_text, text_for_reranker, view_people, with_names
from retrieval.relevance import closeness_threshold, decayed
from store.queries.search import StoredLine
from tests.support.remembered import CLIP_MS
from tests.support.story import candidates_of

ADA = Character(number=2, name="Ada Lovelace", faces=(0,), voices=(1, 3))
NOBODY = Character(number=3, faces=(4,))

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
    assert shown[0] == best
    assert shown == sorted(shown, reverse=True)
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


def line(
    text: str, source: str = "said", speaker: str | None = None, kind: str = "episodic"
) -> StoredLine:
    return StoredLine(1, 0, 0, 1, kind, text, source, speaker, None)


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (line("Hello", speaker="<voice_1>"), "Ada Lovelace: Hello"),
        (line("Hello", speaker="<voice_9>"), "<voice_9>: Hello"),
        (line("Hello", speaker="Bob"), "Bob: Hello"),
        (line("Hello"), "Hello"),
        (line("EXIT", "read"), "On screen: EXIT"),
        (line("<face_0> is a poet", "read", kind="character"), "Ada Lovelace is a poet"),
        (line("<face_0> waves at <face_4>", "seen"), "Ada Lovelace waves at <face_4>"),
    ],
)
def test_lines_are_shown_with_names(shown: StoredLine, text: str) -> None:
    assert line_text(shown, view_people({"v": [ADA, NOBODY]}).names("v")) == text


def test_an_unnamed_person_with_several_tags_is_shown_by_number() -> None:
    merged = Character(number=5, faces=(0,), voices=(1, 3), joined=(7, 8))
    names = view_people({"v": [merged, NOBODY]}).names("v")
    assert line_text(line("<face_0> waves at <face_4>", "seen"), names) == (
        "<character_5> waves at <face_4>"
    )
    assert line_text(line("Hello", speaker="<voice_3>"), names) == "<character_5>: Hello"
    assert line_text(line("<character_7> is a poet", kind="character"), names) == (
        "<character_5> is a poet"
    )
    assert text_for_reranker(line("<face_0> waves", speaker="<voice_1>"), names) == "somebody waves"


def test_a_merged_number_belongs_to_the_merged_person() -> None:
    ada = Character(number=2, name="Ada", faces=(0,), joined=(7,))
    people = view_people({"v": [ada]})
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
    assert people.terms_of("Where does Ada sing?") == [
        "ada",
        "sing",
        "character_2",
        "face_0",
        "voice_1",
        "voice_3",
    ]
    assert people.terms_of("Who sings?") == ["sing"]
