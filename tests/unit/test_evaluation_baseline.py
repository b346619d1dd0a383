"""The plain ways to answer that evaluations compare with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from domain.time import TimeSpan
from evals.baseline import RETRIEVED, Baseline, Plain, WordBaseline
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
