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

from agent.strategy import ToolUse
from domain.errors import InputError, NotFound
from retrieval.vector_store import MemoryVectorStore
from store.database import Store
from store.queries.clips import memory_view
from strategies.plain_rag.nearest import NearestLines
from strategies.plain_rag.strategy import NearestArguments
from tests.support.remembered import Said, Tools, WordEmbedder, name, watch

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


def test_a_video_is_chosen_by_title_or_by_several_ids(library: Store) -> None:
    assert found(library, "red door", video=TALK) == ["Bob: they sell a red door"]
    assert "rain falls on the roof" in found(library, "rain roof", video=[FILM, TALK])


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
