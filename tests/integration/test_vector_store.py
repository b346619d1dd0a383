"""Memory as a llama-index vector store, and plain RAG over it."""

from __future__ import annotations

import pytest
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import (
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
)
from sqlalchemy import text

from agent.strategy import ToolUse
from domain.errors import InputError, NotFound
from retrieval.vector_store import MemoryVectorStore
from services.health import check_search_index
from store import vector_index
from store import vector_index as hnsw
from store.database import Store
from store.queries import search
from store.queries.candidates import near_clips
from store.queries.clips import memory_view
from store.vector_index import MEMORIES, build_index, missing_indexes
from strategies.plain_rag.nearest import NearestLines
from strategies.plain_rag.strategy import NearestArguments
from tests.support.remembered import SIZE, Said, Tools, WordEmbedder, name, watch

FILM, TALK = "f" * 16, "a" * 16
EMBEDDER = WordEmbedder()


@pytest.fixture
def library(store: Store) -> Store:
    """Two videos: Ada paints a red door in one, a door is sold in the other."""
    watch(
        store,
        FILM,
        [
            [Said("<face_0> paints the red door", source="seen", who=("<face_0>",))],
            [Said("the door is dry now", speaker="Bob")],
            [Said("the red door is closed", until=3), Said("rain falls on the roof")],
        ],
    )
    name(store, FILM, 0, "Ada", "<face_0>")
    watch(store, TALK, [[Said("they sell a red door", speaker="Bob")]])
    return store


def found(store: Store, words: str, top: int = 3, **filters: object) -> list[str]:
    asked = MetadataFilters(
        filters=[
            MetadataFilter(
                key=key,
                value=value,
                operator=FilterOperator.IN if isinstance(value, list) else FilterOperator.EQ,
            )
            for key, value in filters.items()
        ]
    )
    query = VectorStoreQuery(
        query_embedding=EMBEDDER.embed([words])[0].tolist(), similarity_top_k=top, filters=asked
    )
    result = MemoryVectorStore(store).query(query)
    return [node.get_content() for node in result.nodes or ()]


def test_the_nearest_lines_come_first_from_all_videos(library: Store) -> None:
    assert found(library, "red door", top=2) == [
        "the red door is closed",
        "Bob: they sell a red door",
    ]


def test_nothing_of_a_later_clip_is_found_as_of_a_moment(library: Store) -> None:
    early = found(library, "red door", video=FILM, as_of_ms=60_000)
    assert early == ["<face_0> paints the red door", "Bob: the door is dry now"]


def test_a_person_is_found_by_name_in_one_video(library: Store) -> None:
    assert found(library, "door", video=FILM, person="Ada") == ["<face_0> paints the red door"]
    with pytest.raises(InputError, match="filter by the video too"):
        found(library, "door", person="Ada")
    with pytest.raises(InputError, match="nobody in this video is known as 'Eve'"):
        found(library, "door", video=FILM, person="Eve")


def test_a_speaker_is_found_in_all_videos(library: Store) -> None:
    assert set(found(library, "door", speaker="Bob")) == {
        "Bob: the door is dry now",
        "Bob: they sell a red door",
    }


def test_invalid_filters_and_unknown_names_are_errors(library: Store) -> None:
    with pytest.raises(InputError, match="cannot be filtered by mood"):
        found(library, "door", mood="sad")
    with pytest.raises(NotFound):
        found(library, "door", video="nowhere")
    with pytest.raises(InputError, match="embedding"):
        MemoryVectorStore(library).query(VectorStoreQuery(query_str="door"))


def test_memory_is_not_written_through_the_store(library: Store) -> None:
    vectors = MemoryVectorStore(library)
    with pytest.raises(InputError, match="homer ingest"):
        vectors.add([TextNode(text="an injected line")])
    with pytest.raises(InputError, match="homer delete"):
        vectors.delete("m1")


def test_plain_rag_skips_shown_lines_and_scores_options(library: Store) -> None:
    nearest = NearestLines(library, Tools(EMBEDDER))
    with library.begin() as session:
        view = memory_view(session, [FILM])
    query = "who paints the red door"
    first = nearest(view, NearestArguments(query=query), ToolUse())
    seen = frozenset(one.ref for one in first.evidence[:1])
    again = nearest(view, NearestArguments(query=query), ToolUse(seen=seen))
    assert not seen & {one.ref for one in again.evidence}
    options = ("Ada paints", "rain falls")
    chosen = nearest(view, NearestArguments(query=query, options=options), ToolUse())
    by_ref = {one.ref: one.scores for one in chosen.weighed}
    rain = next(e.ref for e in chosen.evidence if e.text.startswith("rain"))
    assert by_ref[rain][1] > by_ref[rain][0]


# The HNSW index of a large library: when it is due, how it is built, and what it finds.


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
    assert (missing_indexes(store), build_index(store, Steps())) == ([], 0)


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
