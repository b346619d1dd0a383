"""Chapters of a video: where they are cut, what they are called, and what is quoted of them."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from domain.memories import MemorySource
from domain.time import TimeSpan
from models.sentences import SentenceParser
from retrieval.chapters import Chapter, TopicLine, Vectors, chapter_ends, chapters
from tests.support.remembered import PARSER, WordEmbedder

EMBED = WordEmbedder().embed
CARS = (
    "The old car has a broken engine that leaks oil.",
    "My brother repairs the engine of the car with new parts.",
    "The engine oil of the car costs forty dollars.",
)
SOUP = (
    "The tomato soup boils in a large pot on the stove.",
    "Fresh basil gives tomato soup a sweet taste.",
    "The guests eat tomato soup with bread from the stove.",
)


def said(*texts: str, each_ms: int = 5_000, source: str = MemorySource.SAID) -> list[TopicLine]:
    return [
        TopicLine(TimeSpan.of(n * each_ms, (n + 1) * each_ms), text, source)
        for n, text in enumerate(texts)
    ]


def made_of(lines: list[TopicLine], parser: SentenceParser = PARSER) -> list[Chapter]:
    span = TimeSpan.of(0, max(line.span.end_ms for line in lines))
    return chapters(span, lines, EMBED([line.text for line in lines]), parser, EMBED)


def test_a_talk_of_two_topics_has_two_chapters_cut_at_the_change_and_named_by_them() -> None:
    cars, soup = made_of(said(*CARS * 5, *SOUP * 7))
    assert cars.span.end_ms == soup.span.start_ms == 15 * 5_000
    assert (cars.name, soup.name) == ("Car", "Tomato soup")
    assert set(cars.summary) <= set(CARS)
    assert set(soup.summary) <= set(SOUP)
    assert (cars.lines, soup.lines) == (tuple(range(15)), tuple(range(15, 36)))


def test_what_a_sponsor_has_to_say_is_never_quoted() -> None:
    sponsor = ("Our sponsor has the link in the description.", "The code gives you a discount.")
    found = made_of(said(*SOUP * 16, *sponsor * 5))
    assert len(found) > 1
    assert all(not {*sponsor} & {*one.summary} for one in found)


def test_a_slide_is_read_where_nothing_is_said() -> None:
    slides = said("BREAD PRICES", "BREAD COSTS", each_ms=10_000, source=MemorySource.READ)
    assert "prices" in made_of(slides)[0].name.casefold()
    (only,) = made_of([*slides, *said(*CARS)])
    assert only.name == "Car"


@pytest.mark.parametrize("parser", [PARSER, SentenceParser(Path("/nowhere"))])
def test_without_a_pipeline_of_the_language_names_are_words_of_it(parser: SentenceParser) -> None:
    german = (
        "Der alte Hund und die Katze sind nicht in dem Garten.",
        "Ein Nachbar hat den alten Hund mit der Leine in dem Wald gesehen.",
        "Ich gehe mit dem Hund zum Arzt, und er ist nicht krank.",
    )
    (only,) = made_of(said(*german), parser)
    assert only.name == "Hund"
    assert set(only.summary) <= set(german)
    assert made_of(said(*CARS), parser)[0].name.casefold() in "car engine oil"


def topics(*minutes: float) -> tuple[TimeSpan, list[TopicLine], Vectors]:
    """Return lines of 5 s: so many minutes of each subject."""
    dice = np.random.default_rng(0)
    counts = [max(1, round(one * 12)) for one in minutes]
    rows = np.repeat(dice.normal(size=(len(counts), 32)), counts, axis=0)
    rows += dice.normal(size=rows.shape)
    lines = said(*["ten words " * 5] * len(rows))
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return TimeSpan.of(0, len(rows) * 5_000), lines, unit.astype(np.float32)


def test_the_longest_chapters_are_worded_and_those_that_cannot_be_keep_their_names() -> None:
    (span, lines, vectors), seen = topics(*[1] * 180), list[int]()

    def word(texts: Sequence[str]) -> tuple[str, str] | None:
        seen.append(len(texts))
        return ("Told anew", "In other words.") if len(seen) > 1 else None

    plain = chapters(span, lines, vectors, PARSER, lambda texts: vectors[: len(texts)])
    worded = chapters(span, lines, vectors, PARSER, lambda texts: vectors[: len(texts)], word=word)
    anew = [one for one, before in zip(worded, plain, strict=True) if one != before]
    assert sorted(len(one.lines) for one in plain)[-12:] == sorted(seen)
    assert [(one.name, *one.summary) for one in anew] == [("Told anew", "In other words.")] * 11


def test_a_crowded_video_takes_bounded_memory() -> None:
    span, _, vectors = topics(4, 4)
    tracemalloc.start()
    chapter_ends(span, said(*["word"] * 4_800, each_ms=100), np.repeat(vectors, 50, axis=0))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 100_000_000
