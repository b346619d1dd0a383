"""Which questions are read as questions about structure, and which are left alone."""

from __future__ import annotations

import time

import pytest

from agent.reasoners.structure_questions import LONGEST, structure_of
from domain.search import Asks, Structure
from domain.texts import first_number, has_number


@pytest.mark.parametrize(
    ("question", "asks", "manner"),
    [
        ("Who is in it?", Asks.PEOPLE, ""),
        ("Who can be seen in the clip?", Asks.PEOPLE, ""),
        ("Which people appear in this film?", Asks.PEOPLE, ""),
        ("Who speaks?", Asks.SPEAKERS, "said"),
        ("who is talking in the video, and when", Asks.SPEAKERS, "said"),
        ("How many people are in the meeting?", Asks.COUNT, ""),
        ("How many people do you see?", Asks.COUNT, ""),
        ("How many people speak?", Asks.COUNT, "said"),
        ("How many voices are there?", Asks.COUNT, "said"),
        ("What's it about?", Asks.ABOUT, ""),
        ("Summarise the video.", Asks.ABOUT, ""),
        ("How does the film open?", Asks.BEGINNING, ""),
        ("What is said first?", Asks.BEGINNING, "said"),
        ("What is shown at the beginning of the video?", Asks.BEGINNING, "shown"),
        ("How does it end?", Asks.END, ""),
        ("What happens at the very end of the film?", Asks.END, ""),
        ("What are the last words?", Asks.END, "said"),
        ("What is the very last thing that is said?", Asks.END, "said"),
        ("What is the very first thing you see?", Asks.BEGINNING, "shown"),
        ("Which topics are covered?", Asks.ABOUT, ""),
    ],
)
def test_what_people_ask_first_is_recognised(question: str, asks: Asks, manner: str) -> None:
    assert structure_of(question) == Structure(asks=asks, manner=manner)


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("When does Ann speak?", Structure(asks=Asks.SPEAKERS, subject="Ann", manner="said")),
        (
            "When are black holes first mentioned?",
            Structure(asks=Asks.FIRST, subject="black holes", manner="said"),
        ),
        (
            "When is the piano mentioned for the last time in the video?",
            Structure(asks=Asks.LAST, subject="piano", manner="said"),
        ),
        (
            "When do we first see a dog?",
            Structure(asks=Asks.FIRST, subject="dog", manner="shown"),
        ),
        ("When does the rain first start?", Structure(asks=Asks.FIRST, subject="rain")),
        (
            "Where was Ann last seen?",
            Structure(asks=Asks.WHEREABOUTS, subject="Ann", manner="shown"),
        ),
        (
            "When and where has Ann last been seen?",
            Structure(asks=Asks.WHEREABOUTS, subject="Ann", manner="shown"),
        ),
        (
            "in which video did we last see Ann",
            Structure(asks=Asks.WHEREABOUTS, subject="Ann", manner="shown"),
        ),
        (
            'What does she say right after "good night"?',
            Structure(asks=Asks.AFTER, subject="good night", manner="said"),
        ),
        ("What happens before the storm?", Structure(asks=Asks.BEFORE, subject="storm")),
        (
            "What is said just before the harbour is mentioned?",
            Structure(asks=Asks.BEFORE, subject="harbour", manner="said"),
        ),
        (
            "When do the credits roll?",
            Structure(asks=Asks.FIRST, subject="credits", manner="shown"),
        ),
        ("What precedes the song?", Structure(asks=Asks.BEFORE, subject="song")),
        (
            "How many people are sitting at the table?",
            Structure(asks=Asks.COUNT, subject="sitting at the table"),
        ),
    ],
)
def test_the_thing_that_is_meant_is_taken_out(question: str, found: Structure) -> None:
    assert structure_of(question) == found


@pytest.mark.parametrize(
    ("question", "asks"),
    [
        ("What colour is the car?", Asks.LOOKS),
        ("What is the woman wearing?", Asks.LOOKS),
        ("What does the host look like?", Asks.LOOKS),
        ("How many windows does the house have?", Asks.NUMBER),
        ("How many people wear hats?", Asks.NUMBER),
        ("Is she smiling?", Asks.ACTION),
        ("Is Bob Miller smiling at her?", Asks.ACTION),
        ("What kind of hat does the man wear?", Asks.LOOKS),
        ("Which shirt is he wearing?", Asks.LOOKS),
        ("What does he do with his hands?", Asks.ACTION),
        ("What does the man do with the pan near the end?", Asks.ACTION),
        ("What is the woman doing at the window?", Asks.ACTION),
        ("What does the boy have on his head?", Asks.LOOKS),
        ("Which animals are on the wall?", Asks.THINGS),
        ("What kinds of vehicles can be seen?", Asks.THINGS),
        ("What can be seen behind the woman?", Asks.THINGS),
        ("What is parked next to the house?", Asks.THINGS),
        ("What is Carlo typing on at his desk?", Asks.THINGS),
    ],
)
def test_what_takes_a_description_is_recognised(question: str, asks: Asks) -> None:
    found = structure_of(question)
    assert found is not None
    assert found.asks is asks


@pytest.mark.parametrize(
    "question",
    [
        "",
        "What does Ann open?",
        "Who opens the gate?",
        "Who is the boss?",
        "What is the theme of the conference?",
        "Why did the party move inside?",
        "What did the boy do after he fell?",
        "When was the harbour rebuilt?",
        "Which conservation law is tied to time reversal symmetry?",
        "What comes out of the box?",
        "Where did the members meet?",
        "Does memory cost much?",
        "What is on the wall behind Ann, and what does she say?",
        "Which animals does the speaker mention?",
        "What is it that stands between them?",
        "What is the role of the man standing in the background?",
        "What food does Alice love to eat?",
        "What colour does she mention?",
        "How many eggs does the cook say you need?",
        "What do I do after I find glasses that no one is wearing?",
    ],
)
def test_other_questions_are_left_alone(question: str) -> None:
    assert structure_of(question) is None


def test_with_options_only_what_can_be_compared_is_recognised_and_nothing_is_declined() -> None:
    assert structure_of("How many people are there?", ("one", "two")) is not None
    assert structure_of("How does it end?", ("well", "badly")) is not None
    for question in ("What colour is the car?", "How many hats are there?", "Who speaks?"):
        assert structure_of(question, ("a", "b")) is None


@pytest.mark.parametrize("filler", ["the ", "in it ", "when is ", "first "])
def test_long_questions_are_read_quickly(filler: str) -> None:
    began = time.perf_counter()
    for start in ("when is ", "what comes after ", "who is in ", "how many "):
        structure_of((start + filler * LONGEST)[:LONGEST])
    assert time.perf_counter() - began < 2


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("Three", 3),
        ("[00:04-00:09] <face_2> sees 12 birds", 12),
        ("at 1:02:03 <voice_1> speaks", None),
        ("None of them", 0),
        ("somebody", None),
    ],
)
def test_times_and_tags_are_no_numbers(text: str, number: int | None) -> None:
    assert first_number(text) == number
    assert has_number(text) is (number is not None)
