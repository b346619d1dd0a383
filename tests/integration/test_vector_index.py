"""The HNSW index of a large library: when it is due, how it is built, and what it finds."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from services.health import check_search_index
from store import vector_index
from store import vector_index as hnsw
from store.database import Store
from store.queries import search
from store.queries.candidates import near_clips
from store.queries.clips import memory_view
from store.vector_index import MEMORIES, build_index, missing_indexes
from tests.support.remembered import SIZE, Said, WordEmbedder, watch

VIDEO = "b" * 16
CLIPS = 200


class Steps:
    """Adds up what is reported."""

    def __init__(self) -> None:
        self.total = self.done = 0

    def start(self, _: str, total: int, done: int = 0) -> None:
        self.total = total - done

    def step(self, steps: int = 1) -> None:
        self.done += steps


@pytest.fixture
def large(store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setitem(vector_index.LARGE, MEMORIES, 100)
    monkeypatch.setattr(search, "WIDE", 100)
    words = [f"word{number}" for number in range(CLIPS)]
    watch(store, VIDEO, [[Said(f"{words[n]} and {words[(n + 1) % CLIPS]}")] for n in range(CLIPS)])
    with store.begin() as session:
        session.execute(text("ANALYZE memories"))
    return store


def test_a_small_library_needs_no_index(store: Store) -> None:
    watch(store, VIDEO, [[Said("a few words")]])
    assert missing_indexes(store) == []
    assert build_index(store, Steps()) == 0


def test_a_large_library_gets_a_notice_until_its_index_is_built(large: Store) -> None:
    assert missing_indexes(large) == [(MEMORIES, SIZE)]
    assert (check_search_index(large).warning, check_search_index(large).fix) == (
        True,
        "homer db index",
    )
    steps = Steps()
    assert build_index(large, steps) == 1
    assert steps.done <= steps.total
    assert missing_indexes(large) == []
    assert not check_search_index(large).warning


def test_an_incomplete_index_is_built_again(large: Store) -> None:
    build_index(large, Steps())
    with large.begin() as session:
        name = hnsw.index_name(SIZE)
        session.execute(
            text(
                "UPDATE pg_index SET indisvalid = false WHERE indexrelid = CAST(:name AS regclass)"
            ),
            {"name": name},
        )
    assert missing_indexes(large) == [(MEMORIES, SIZE)]
    build_index(large, Steps())
    assert missing_indexes(large) == []


def test_lines_with_vectors_of_another_size_do_not_prevent_the_index(large: Store) -> None:
    build_index(large, Steps())
    with large.begin() as session:
        other = "[" + ",".join(["0.1"] * 8) + "]"
        session.execute(
            text("UPDATE memories SET embedding = CAST(:vector AS halfvec) WHERE clip = 0"),
            {"vector": other},
        )
        view = memory_view(session, [VIDEO])
        found = near_clips(
            session, view.scopes, WordEmbedder().embed(["word5 and word6"]), 1, by_index=True
        )
    assert [one.clip for one in found] == [5]
