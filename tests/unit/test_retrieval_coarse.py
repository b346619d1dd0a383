"""A first pass over rounded vectors: the best are the same as without, and as exact."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.retrieval import ranking
from memory.retrieval.coarse import NEAREST, SURE, CoarseField
from memory.retrieval.codes import TAIL, asked_codes, rounded
from memory.retrieval.field import Field
from memory.retrieval.index import VideoIndex, grown
from memory.retrieval.moments import best_moments
from memory.retrieval.panorama import Panorama
from memory.retrieval.ranking import Asked, Vectors, relevance
from models.packed import MOST, MOST_ASKED, PackedRows
from store.queries.search import Matrix
from tests.support.story import index_of, view_at

CLIPS, LINES, SIZE = 1_500, 2, 48
WORDS = ["soup", "tent", "train", "piano", "kettle", "ladder", "mirror", "candle"]
SAME = 0.003
"""Standard deviations that means and deviations of rounded vectors may shift a score by."""
QUESTION = Asked("Who moves the piano by candle light?")


def units(count: int, seed: int, size: int = SIZE) -> Matrix:
    """Vectors of length 1 around a few directions, as those of sentences are."""
    dice = np.random.default_rng(seed)
    around = np.random.default_rng(1).standard_normal((20, size))
    rows = around[dice.integers(0, 20, count)] + 0.6 * dice.standard_normal((count, size))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


def library(clips: int = CLIPS, first: int = 0) -> VideoIndex:
    """Clips of two lines each; a clip of the same number is the same in any library."""
    story = [
        [f"{WORDS[(7 * n + k * k) % 8]} {WORDS[(n // 3 + k) % 8]}" for k in range(LINES)]
        for n in range(first, first + clips)
    ]
    index = index_of(story, first=first, gone={3: 40, 1001: 900})
    vectors = units(CLIPS * LINES, seed=2)[first * LINES : (first + clips) * LINES]
    sums = np.add.reduceat(vectors, index.first, axis=0)
    return replace(index, vectors=vectors, sums=sums)


@pytest.fixture(scope="module")
def index() -> VideoIndex:
    return library()


def fields(view: Panorama, patch: pytest.MonkeyPatch, seed: int = 5) -> tuple[CoarseField, Field]:
    """The same question with a first pass and without."""
    vectors = Vectors(*(units(1, seed)[i] if i is not None else units(0, 0) for i in _OF))
    patch.setattr(ranking, "MANY", 10**9)
    exact = relevance(view, QUESTION, vectors)
    patch.setattr(ranking, "MANY", 0)
    coarse = relevance(view, QUESTION, vectors)
    assert isinstance(coarse, CoarseField)
    return coarse, exact


_OF = (0, None, None, 0)


@pytest.mark.parametrize("seed", range(5, 10))
def test_the_best_are_those_of_a_full_pass(
    index: VideoIndex, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    view = view_at(CLIPS, index)
    coarse, exact = fields(view, monkeypatch, seed)
    assert not coarse.sharp.any()
    coarse.sharpen_best()
    best, first = (np.argsort(-field.cells, kind="stable")[:SURE] for field in (exact, coarse))
    assert coarse.exact(best).all()
    assert exact.exact(best).all()
    assert exact.cells[first] == pytest.approx(exact.cells[best], abs=SAME)
    assert coarse.cells[first] == pytest.approx(exact.cells[first], abs=SAME)
    near, nearest = (np.argsort(-field.lines[0])[:NEAREST] for field in (coarse, exact))
    assert near.tolist() == nearest.tolist()
    assert coarse.lines[0, near].tolist() == exact.lines[0, near].tolist()
    one, other = (best_moments(view, QUESTION, field, 20) for field in (coarse, exact))
    assert len({moment.line for moment in one} & {moment.line for moment in other}) >= 19


def test_few_are_looked_at_twice_and_the_rest_is_off_by_less_than_said(
    index: VideoIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    coarse, exact = fields(view_at(CLIPS, index), monkeypatch)
    coarse.sharpen_best()
    assert SURE <= coarse.sharp.sum() < CLIPS / 4
    away = np.abs(coarse.cells - exact.cells)
    assert away.max() <= coarse.off
    assert away[~coarse.sharp].max() > 1e-4


def test_what_is_looked_into_becomes_exact(
    index: VideoIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = view_at(CLIPS, index)
    coarse, exact = fields(view, monkeypatch)
    assert coarse.sharpen(np.arange(view.cell_count))
    assert not coarse.sharpen(np.array([3, 5]))
    assert np.array_equal(coarse.lines, exact.lines)
    assert coarse.cells == pytest.approx(exact.cells, abs=SAME)
    assert not exact.sharpen(np.array([3]))
    assert exact.margin == 0


def test_a_view_as_of_then_is_what_was_seen_then(
    index: VideoIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Byte by byte, whatever came later, and however the index grew."""
    early = library(700)
    then, _ = fields(view_at(699, early), monkeypatch)
    bigger = grown(early, library(CLIPS - 700, first=700), {})
    for now in (index, bigger):
        now = replace(now, gone=index.gone)
        seen, _ = fields(view_at(699, now), monkeypatch)
        assert np.array_equal(seen.cells, then.cells)
        assert np.array_equal(seen.lines, then.lines)


def test_few_lines_in_view_are_all_scored_exactly(index: VideoIndex) -> None:
    vectors = Vectors(units(1, 5)[0], units(0, 0), units(0, 0), units(1, 5)[0])
    assert type(relevance(view_at(CLIPS, index), QUESTION, vectors)) is Field


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1, 7, TAIL - 1, TAIL + 3]), st.integers(0, 400))
def test_rounded_rows_are_off_by_no_more_than_they_say(seed: int, later: int, count: int) -> None:
    rows, query = units(400 + later, seed), units(1, seed + 1)[0]
    rows[5] = 0
    whole, grew = rounded(rows), rounded(rows[:400]).followed_by(rows[400:])
    asked = asked_codes(query)
    for cut in (count, len(rows)):
        found = whole.cosines(asked, cut)
        assert np.array_equal(found, grew.cosines(asked, cut))
        away = np.abs(found - rows[:cut] @ query).max(initial=0)
        assert away <= whole.off(asked, cut) < 0.05


@pytest.mark.parametrize(("row", "asked"), [(MOST, MOST_ASKED), (-MOST, -MOST_ASKED), (MOST, -3)])
def test_products_of_whole_numbers_are_exact_at_both_ends(row: int, asked: int) -> None:
    rows = PackedRows(np.full((3, 384), row, dtype=np.int8))
    assert len(rows) == 3
    assert (rows.products(np.full((2, 384), asked, dtype=np.int8)) == 384 * row * asked).all()
