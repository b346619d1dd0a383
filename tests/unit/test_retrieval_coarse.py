"""A first pass over rounded vectors: the best are the same as without, and as exact."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.memories import MemoryView, Scope
from models import large_pages
from models.packed_rows import LAST, ZERO, PackedRows, paired
from retrieval import coarse, ranking
from retrieval.coarse import NEAREST, SURE, CoarseField, first_pass
from retrieval.line_vectors import LineVectors
from retrieval.moments import best_moments
from retrieval.quantized import TAIL, RoundedRows, rounded
from retrieval.ranking import PreparedQuestion, QuestionVectors, relevance
from retrieval.relevance import Relevance
from retrieval.video_index import Floats, VideoIndex, grown
from retrieval.view_index import ViewIndex, panorama
from store.queries.search import Matrix
from tests.support.story import index_of, view_at

CLIPS, LINES, SIZE = 1_500, 2, 48
WORDS = ["soup", "tent", "train", "piano", "kettle", "ladder", "mirror", "candle"]
SAME = 0.05
"""Standard deviations that means and deviations of rounded vectors may shift a score by."""
QUESTION = PreparedQuestion("Who moves the piano by candle light?")


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
    return replace(index, line_vectors=LineVectors(vectors))


@pytest.fixture(scope="module")
def index() -> VideoIndex:
    return library()


def fields(
    view: ViewIndex, patch: pytest.MonkeyPatch, seed: int = 5
) -> tuple[CoarseField, Relevance]:
    """The same question with a first pass and without."""
    vectors = QuestionVectors(*(units(1, seed)[i] if i is not None else units(0, 0) for i in _OF))
    patch.setattr(ranking, "MANY", 10**9)
    exact = relevance(view, QUESTION, vectors)
    patch.setattr(ranking, "MANY", 0)
    quick = relevance(view, QUESTION, vectors)
    assert isinstance(quick, CoarseField)
    return quick, exact


_OF = (0, None, None, 0)


@pytest.mark.parametrize("seed", range(5, 10))
def test_the_best_are_those_of_a_full_pass(
    index: VideoIndex, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    view = view_at(CLIPS, index)
    quick, exact = fields(view, monkeypatch, seed)
    assert not quick.sharp.any()
    quick.sharpen_best()
    best, first = (np.argsort(-field.cells, kind="stable")[:SURE] for field in (exact, quick))
    assert quick.exact(best).all()
    assert exact.exact(best).all()
    assert exact.cells[first] == pytest.approx(exact.cells[best], abs=SAME)
    assert quick.cells[first] == pytest.approx(exact.cells[first], abs=SAME)
    near, nearest = (np.argsort(-field.lines[0])[:NEAREST] for field in (quick, exact))
    assert near.tolist() == nearest.tolist()
    assert quick.lines[0, near].tolist() == exact.lines[0, near].tolist()
    one, other = (best_moments(view, QUESTION, field, 20) for field in (quick, exact))
    assert len({moment.line for moment in one} & {moment.line for moment in other}) >= 19


def test_few_are_looked_at_twice_and_the_rest_is_off_by_less_than_said(
    index: VideoIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick, exact = fields(view_at(CLIPS, index), monkeypatch)
    quick.sharpen_best()
    assert SURE <= quick.sharp.sum() < CLIPS / 4
    away = np.abs(quick.cells - exact.cells)
    assert away.max() <= quick.off
    assert away[~quick.sharp].max() > 1e-4


def test_what_is_looked_into_becomes_exact(
    index: VideoIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = view_at(CLIPS, index)
    quick, exact = fields(view, monkeypatch)
    assert quick.sharpen(np.arange(view.cell_count))
    assert not quick.sharpen(np.array([3, 5]))
    assert np.array_equal(quick.lines, exact.lines)
    assert quick.cells == pytest.approx(exact.cells, abs=SAME)
    assert not exact.sharpen(np.array([3]))
    assert exact.off == 0


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
    vectors = QuestionVectors(units(1, 5)[0], units(0, 0), units(0, 0), units(1, 5)[0])
    assert type(relevance(view_at(CLIPS, index), QUESTION, vectors)) is Relevance


def cosines(rows: RoundedRows, query: Floats, count: int) -> Floats:
    found = np.empty(count, dtype=np.float32)
    rows.cosines(query, found)
    return found


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1, 7, TAIL - 1, TAIL + 3]), st.integers(0, 400))
def test_rounded_rows_are_off_by_no_more_than_they_say(seed: int, later: int, count: int) -> None:
    """And the same number by number, however they came together and whatever came later."""
    rows, query = units(400 + later, seed), units(1, seed + 1)[0]
    rows[5] = 0
    whole, grew = rounded(rows), rounded(rows[:400]).followed_by(rows[400:])
    early = rounded(rows[:count]) if count else whole
    for cut in (count, len(rows)):
        found = cosines(whole, query, cut)
        assert np.array_equal(found, cosines(grew, query, cut))
        assert np.array_equal(found[:count], cosines(early, query, count))
        away = np.abs(found - rows[:cut] @ query)
        assert (away <= whole.off(cut)).mean() > 0.999 if cut else not len(away)
        assert away.std() < whole.off(cut) / 3 if cut else True
        assert whole.off(cut) < 0.15


@pytest.mark.parametrize("size", [5, 48, 384, 1536])
def test_products_with_codes_are_those_of_the_numbers_they_stand_for(size: int) -> None:
    dice = np.random.default_rng(size)
    codes = dice.integers(0, LAST + 1, (37, size)).astype(np.uint8)
    steps = dice.random(37, dtype=np.float32)
    rows, query = PackedRows(paired(codes), steps, codes.shape[1]), units(1, 3, size)[0]
    true = (codes.astype(np.float32) - ZERO) * steps[:, None] @ query
    assert len(rows) == 37
    assert rows.products(query) == pytest.approx(true, abs=0.02 * float(np.abs(true).max()))


def test_videos_are_read_beside_each_other_as_one_after_the_other(
    index: VideoIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether threads are worth it changes nothing."""
    videos = [replace(index, video=f"{n}") for n in range(4)]
    view = panorama(
        MemoryView(scopes=tuple(Scope(video=one.video, last_clip=CLIPS) for one in videos)), videos
    )
    alone, _ = fields(view, monkeypatch)
    monkeypatch.setattr(coarse, "BESIDE", 0)
    beside, _ = fields(view, monkeypatch)
    assert np.array_equal(alone.cells, beside.cells)
    assert np.array_equal(alone.lines, beside.lines)


def some(kind: str, seed: int, size: int = 128) -> VideoIndex:
    """Clips of two lines each, alike or not."""
    rows = units(CLIPS * LINES, seed, size)
    if kind == "the same lines":
        rows = np.repeat(rows[::LINES], LINES, axis=0)
    if kind == "the same for minutes":
        rows = np.repeat(rows[:: 4 * LINES], 4 * LINES, axis=0)[: CLIPS * LINES]
    return replace(library(), line_vectors=LineVectors(rows))


@pytest.mark.parametrize("kind", ["other lines", "the same lines", "the same for minutes"])
def test_cells_as_a_whole_are_off_by_no_more_than_they_say(kind: str) -> None:
    videos = [some(kind, seed) for seed in (3, 4)]
    view, away, said = view_at(CLIPS, *videos), [], []
    for query in units(20, 9, 128):
        with first_pass(view, query) as ended:
            passed = ended()
        _, exact = view.cosines(query[None])
        away.append(np.abs(passed.whole - exact[0]))
        said.append(passed.whole_off)
    assert (np.array(away) <= said[0]).mean() > 0.9995
    assert np.std(away) > said[0] / 20
    assert said == said[:1] * 20


def test_large_pages_are_asked_for_once_a_view_of_many_lines_was_read(
    index: VideoIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted: list[bool] = []
    monkeypatch.setattr(large_pages.OF_PROCESS, "want", lambda: wanted.append(True))
    fields(view_at(CLIPS, index), monkeypatch)
    assert wanted == []
    monkeypatch.setattr(coarse, "LONG", CLIPS)
    view = view_at(CLIPS, index)
    for seed in (5, 6, 7):
        fields(view, monkeypatch, seed)
    assert wanted == [True]
    fields(view_at(CLIPS, index), monkeypatch)
    assert wanted == [True] * 2


def test_what_is_looked_into_in_several_videos_becomes_exact(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of a video's first cell none is just before, though another video's last one is."""
    view = view_at(CLIPS, *(some("other lines", seed, SIZE) for seed in (3, 4, 5)))
    quick, exact = fields(view, monkeypatch)
    chosen = np.array([0, 7, CLIPS - 1, CLIPS, CLIPS + 1, 2 * CLIPS, 3 * CLIPS - 1])
    before = quick.lines.copy()
    near, whole = quick._looked_into(chosen)
    assert near == pytest.approx(exact.near[0, chosen], abs=1e-6)
    assert whole == pytest.approx(view.cosines(quick.query[None])[1][0, chosen], abs=1e-6)
    looked = np.flatnonzero(quick.lines[0] != before[0])
    assert set(view.cell_of_line[looked]) == set(chosen)
