"""An index that was kept as bytes is the one that it was, and fetches what is looked into."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.packed_rows import paired, unpaired
from retrieval.cell_means import magnitudes
from retrieval.index_format import FORMAT, Basis, as_bytes, from_bytes, key_of
from retrieval.line_vectors import LineVectors, fetch_together
from retrieval.quantized import TAIL, coded
from retrieval.video_index import Ints, VideoIndex, grown
from store.queries.search import Matrix
from tests.support.remembered import CLIP_MS, SIZE
from tests.support.story import SINCE, Story, index_of, view_at

GONE = {1: 2, 2003: 3}
STORY: Story = [
    ["Ann bakes a cake", "Bob sings"],
    [],
    ["The cake burns", "Ann laughs", "Bob opens a window"],
    ["They eat the cake", "<face_1> says café, 日本語 and 🎂"],
]
words = st.sampled_from(["cake", "dog", "Ann", "runs", "red", "日本", "naïve", "<face_3>", "a"])
stories = st.lists(st.lists(st.lists(words, min_size=1, max_size=4).map(" ".join), max_size=3))


class Table:
    """Vectors by id; tells how often and for how many it was asked."""

    def __init__(self, *indexes: VideoIndex) -> None:
        pairs = [(one.ids, one.vectors) for one in indexes]
        self.ids = np.concatenate([ids for ids, _ in pairs])
        self.vectors = np.concatenate([vectors for _, vectors in pairs])
        self.asked: list[int] = []

    def __call__(self, ids: Sequence[int]) -> tuple[Ints, Matrix]:
        self.asked.append(len(ids))
        here = np.flatnonzero(np.isin(self.ids, ids))[::-1]
        return self.ids[here], self.vectors[here]


def again(index: VideoIndex, table: Table | None = None) -> VideoIndex | None:
    gone = {line.id: line.superseded_at for line in index.lines if line.superseded_at is not None}
    basis = Basis(index.video, index.since, index.through, gone, table or Table(index))
    return from_bytes(as_bytes(index), basis)


def many(clips: int = 1200, video: str = "v", first: int = 0) -> VideoIndex:
    numbers = range(first, first + clips)
    story = [[f"dog {n % 7} runs", f"cake {n % 11}", f"Ann {n}"] for n in numbers]
    return index_of(story, video, first=first)


def assert_same(one: VideoIndex, other: VideoIndex) -> None:
    assert list(one.lines) == list(other.lines)
    assert (one.cells, one.spans, one.through) == (other.cells, other.spans, other.through)
    for name in (
        "gone",
        "first",
        "keys",
        "lengths",
        "clips",
        "ids",
        "sides",
        "vectors",
        "follows",
        "magnitudes",
    ):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert one.postings.numbers.keys() == other.postings.numbers.keys()
    for term in one.postings.numbers:
        here, there = one.postings.get(term), other.postings.get(term)
        assert here is not None
        assert there is not None
        assert here.cells.tolist() == there.cells.tolist()
        assert here.counts.tolist() == there.counts.tolist()


@settings(max_examples=40, deadline=None)
@given(stories)
def test_what_is_kept_is_what_was(story: Story) -> None:
    index = index_of(story, gone=GONE, speakers={"Ann": "Ann", "Ann Ann": "日本"})
    found = again(index)
    assert found is not None
    assert_same(found, index)


@pytest.mark.parametrize("story", [[], [[]], [["the"]], STORY])
def test_nothing_and_little_are_kept_too(story: Story) -> None:
    index = index_of(story)
    found = again(index)
    assert found is not None
    assert_same(found, index)


def test_a_line_is_the_same_by_number_from_the_end_and_in_a_slice() -> None:
    index = index_of(STORY, gone=GONE)
    found = again(index)
    assert found is not None
    assert found.lines[-1] == index.lines[-1]
    assert found.lines[0].superseded_at == GONE[1]
    assert found.lines[1:4] == list(index.lines[1:4])
    with pytest.raises(IndexError):
        found.lines[len(index.lines)]


def test_first_passes_are_the_same_to_the_last_bit_and_fetch_nothing() -> None:
    index = many()
    assert len(index.lines) > TAIL
    table = Table(index)
    found = again(index, table)
    assert found is not None
    query = np.random.default_rng(3).normal(size=SIZE).astype(np.float32)
    one, other = index.rounded_lines, found.rounded_lines
    cosines = np.empty((2, len(one.steps)), dtype=np.float32)
    one.cosines(query, cosines[0])
    other.cosines(query, cosines[1])
    assert cosines[0].tobytes() == cosines[1].tobytes()
    assert one.off(100) == other.off(100)
    assert table.asked == []


def test_what_is_looked_into_is_fetched_at_one_go_and_once() -> None:
    index, other = many(), many(video="w", first=1200)
    table = Table(index, other)
    kept, beside = again(index, table), again(other, table)
    assert kept is not None
    assert beside is not None
    seen, plain = view_at(10**6, kept, beside), view_at(10**6, index, other)
    cells = np.array([3, 4, 500, 1300, 2399])
    cells = seen.with_last(cells)
    lines, _ = seen.all_lines_of(cells)
    assert np.array_equal(seen.vectors_of(lines), plain.vectors_of(lines))
    # Three lines of each cell, and of each before it but one that is looked into anyway.
    assert table.asked == [3 * 9]
    assert not kept.line_vectors.held


def test_where_many_are_wanted_all_are_fetched_and_none_any_more() -> None:
    index = many()
    table = Table(index)
    found = again(index, table)
    assert found is not None
    found.line_vectors.of(np.arange(10))
    found.line_vectors.of(np.arange(600))
    assert table.asked == [10, len(index.lines) - 10]
    assert found.line_vectors.held
    assert np.array_equal(found.vectors, index.vectors)
    assert len(table.asked) == 2


def test_of_a_line_that_was_deleted_meanwhile_there_is_no_vector() -> None:
    index = many()
    table = Table(index)
    table.ids = np.where(table.ids == index.ids[7], -1, table.ids)
    found = again(index, table)
    assert found is not None
    rows = found.line_vectors.of(np.array([6, 7, 8]))
    assert np.array_equal(rows[[0, 2]], index.vectors[[6, 8]])
    assert not rows[1].any()
    assert table.asked == [3]
    found.line_vectors.of(np.array([7]))
    assert table.asked == [3]


def test_lines_that_were_all_deleted_meanwhile_have_no_vectors() -> None:
    index = many()
    found = from_bytes(as_bytes(index), Basis("v", index.since, 9, {}, lambda _: NOBODY))
    assert found is not None
    assert not found.line_vectors.of(np.array([1, 2])).any()


NOBODY = np.zeros(0, dtype=np.int64), np.zeros((0, 0), dtype=np.float32)


def test_nothing_is_asked_for_where_everything_is_there() -> None:
    held = LineVectors(np.ones((2, 3), dtype=np.float32))
    fetch_together([(held, np.array([0, 1]))])
    assert held.whole.shape == (2, 3)


def test_what_comes_after_a_kept_index_is_added_to_it() -> None:
    whole, late = index_of(STORY), index_of(STORY[2:], first=2)
    early = again(index_of(STORY[:2]))
    assert early is not None
    both = grown(early, late, {})
    assert [line.text for line in both.lines] == [line.text for line in whole.lines]
    assert np.array_equal(both.vectors, whole.vectors)
    assert np.array_equal(both.magnitudes, whole.magnitudes)


@pytest.mark.parametrize("damage", ["cut", "empty", "noise", "flipped"])
def test_damaged_bytes_are_no_index(damage: str) -> None:
    index = index_of(STORY)
    body = as_bytes(index)
    middle = body.index(b"bakes")
    damaged = {
        "cut": body[:middle],
        "empty": b"",
        "noise": bytes(range(256)),
        "flipped": body[:middle] + bytes([body[middle] ^ 255]) + body[middle + 1 :],
    }[damage]
    basis = Basis(index.video, index.since, index.through, {}, Table(index))
    assert from_bytes(damaged, basis) is None


def test_a_key_tells_lines_and_clips_apart() -> None:
    since = (SINCE, 0, SINCE, 4)
    others = [(SINCE, 1, SINCE, 4), (SINCE, 0, SINCE, 5)]
    keys = {key_of(since, CLIP_MS), key_of(since, 10_000), *(key_of(o, CLIP_MS) for o in others)}
    assert len(keys) == 4


@pytest.mark.parametrize("size", [1, 16, 31, 384, 1000])
def test_codes_come_back_from_pairs(size: int) -> None:
    codes = np.random.default_rng(size).integers(0, 16, (5, size)).astype(np.uint8)
    assert np.array_equal(unpaired(paired(codes), size), codes)
    assert len(paired(codes[:0])) == 0


def test_whoever_works_indexes_out_otherwise_raises_the_format() -> None:
    """What this tells apart is what a kept index would be wrong about without anybody noticing."""
    rows = np.random.default_rng(0).integers(-9, 10, (20, 40)).astype(np.float32)
    with np.load(io.BytesIO(as_bytes(index_of(STORY, speakers={"Bob sings": "Bob"})))) as held:
        arrays = {name: held[name] for name in held.files if held[name].dtype.kind in "iu"}
        named = sorted((name, str(held[name].dtype)) for name in held.files)
    whole = {n: a for n, a in arrays.items() if n != "pairs"}
    digest = hashlib.sha256(repr(named).encode())
    for name in sorted(whole):
        digest.update(name.encode() + np.ascontiguousarray(whole[name]).tobytes())
    digest.update(coded(rows).pairs.tobytes())
    follows = np.arange(10) % 3 > 0
    digest.update(np.round(magnitudes(rows, np.arange(0, 20, 2), follows), 3).tobytes())
    assert (FORMAT, digest.hexdigest()[:16]) == (2, "85e6e4628d7a2e59")


def test_some_damage_of_every_kind_is_noticed() -> None:
    body = as_bytes(index_of(STORY))
    basis = Basis("v", (SINCE, 0, SINCE, 0), 3, {}, lambda _: NOBODY)
    places = np.random.default_rng(1).integers(0, len(body), 300).tolist()
    for place in [*range(64), *range(len(body) - 200, len(body)), *places]:
        found = from_bytes(body[:place] + bytes([body[place] ^ 1]) + body[place + 1 :], basis)
        assert found is None or len(found.lines) == 7
