"""Reads of a search from the store: in order, exact, as of a clip, with vectors unchanged."""

from __future__ import annotations

import pytest
from sqlalchemy import select, update

from domain.asking import Mode
from domain.errors import NotFound
from domain.memories import MemoryView, Scope
from domain.settings import Settings
from memory.writers.clip_page import subsample
from people.overlay import people_as_of
from retrieval.retrievers import Retrievers
from store.database import Store
from store.queries.clip_contents import clip_contents, frame_vectors, objects_on, stored_box
from store.queries.clips import end_of_memory
from store.queries.outline import contents_of
from store.queries.search import (
    cited_frames,
    cited_memories,
    cited_segments,
    edges_of_segment,
    view_size,
)
from store.tables.schema import (
    CharacterNameRow,
    CharacterRow,
    EdgeRow,
    KeyframeRow,
    MemoryRow,
)
from tests.support.asking import WordToolbox
from tests.support.remembered import (
    CLIP_MS,
    Event,
    Said,
    add_event_graph,
    identity_of,
    name,
    patch_with_edge,
    recording,
    see,
    watch,
)

V = "0123456789abcdef"
W = "fedcba9876543210"


def scope(last_clip: int, video: str = V) -> Scope:
    return Scope(video=video, last_clip=last_clip)


@pytest.fixture
def watched(store: Store) -> Store:
    watch(
        store,
        V,
        [
            [Said("second", 9), Said("first", 1, until=2)],
            [],
            [Said("third", 3, speaker="Ann", source="said")],
            [Said("<face_0> and <face_1> meet", who=("<face_0>", "<face_1>"), source="seen")],
        ],
    )
    watch(store, W, [[Said("another video")]])
    return store


def test_missing_rows_read_as_empty(watched: Store) -> None:
    with watched.begin() as session:
        assert people_as_of(session, scope(3)) == []
        assert edges_of_segment(session, scope(3), 1) == []
        assert clip_contents(session, scope(3), []) == ([], [], [], [])
        with pytest.raises(NotFound, match="homer videos"):
            view_size(session, [scope(0, "0" * 16)])


def test_people_are_known_as_of_a_clip(watched: Store) -> None:
    name(watched, V, 0, "Ada", "<face_0>", since=1)
    with watched.begin() as session:
        row = session.query(CharacterRow).one()
        whose = identity_of(session, V, "<face_0>")
        held = {"character_id": row.id, "identity_id": whose, "from_clip": 3}
        later = CharacterNameRow(name="Ada L.", source="person", **held)
        misheard = CharacterNameRow(name="Eda", source="said", **held)
        session.add_all([later, misheard])
        session.flush()
        assert people_as_of(session, scope(0)) == []
        assert [one.name for one in people_as_of(session, scope(2))] == ["Ada"]
        assert [one.name for one in people_as_of(session, scope(3))] == ["Ada L."]
        assert people_as_of(session, scope(3))[0].faces == (0,)
        session.execute(update(CharacterRow).values(to_clip=3))
        assert people_as_of(session, scope(3)) == []
        assert len(people_as_of(session, scope(2))) == 1


def test_edges_are_valid_between_their_clips_and_cite_no_later_ones(watched: Store) -> None:
    events = [Event(n, f"event {n}", "", (n,), since=1) for n in range(3)]
    ids = add_event_graph(watched, V, events, [(0, 1, "before", 1), (2, 0, "causes", 3)])
    with watched.begin() as session:
        session.execute(update(EdgeRow).where(EdgeRow.relation == "before").values(to_clip=3))
        session.execute(update(EdgeRow).values(evidence=[0, 3]))
        assert [e.relation for e in edges_of_segment(session, scope(2), ids[0])] == ["before"]
        assert edges_of_segment(session, scope(2), ids[0])[0].evidence == (0,)
        assert [e.relation for e in edges_of_segment(session, scope(3), ids[0])] == ["causes"]
        assert [e.relation for e in edges_of_segment(session, scope(3), ids[2])] == ["causes"]
        assert edges_of_segment(session, scope(0), ids[0]) == []


def test_the_contents_of_a_video_are_some_of_its_events_from_the_first_on(store: Store) -> None:
    watch(store, V, [[Said("a line")] for _ in range(11)])
    add_event_graph(store, V, [Event(n, f"event {n}", "", (n,), n) for n in range(11)], [])
    with store.begin() as session:
        for most in (1, 3, 4, 10, 11, 50):
            told = [one.label for one in contents_of(session, V, 9, most)]
            assert told == [f"event {n}" for n in subsample(range(10), most)]
        assert contents_of(session, V, 9, 1)[0].span.length_ms == CLIP_MS
        assert end_of_memory(session, V, 9) == 10 * CLIP_MS
        assert end_of_memory(session, V) == 11 * CLIP_MS


def test_contents_of_clips_are_read_with_their_frames(watched: Store) -> None:
    recording(watched, V, [61.0, 1.0, 91.0], {61.0: "EXIT"})
    see(watched, V, "<face_0>", 60.5, 62.0)
    recording(watched, V, [], {61.0: 'say "\n\\ü🎂"'}, {61.0: ["cup", "dog"], 1.0: ["tent"]})
    with watched.begin() as session:
        clips = [0, 2, 3]
        found = clip_contents(session, scope(3), clips)
        assert [f.time_ms for f in found.frames] == [1_000, 61_000, 91_000]
        assert [f.clip for f in clip_contents(session, scope(2), clips).frames] == [0, 2]
        assert found.texts == [(61_000, "EXIT"), (61_000, 'say "\n\\ü🎂"')]
        assert [(one.time_ms, one.label) for one in found.objects] == [
            (1_000, "tent"),
            (61_000, "cup"),
            (61_000, "dog"),
        ]
        assert found.objects == objects_on(session, scope(3), clips)
        assert (found.objects[0].score, found.objects[0].box) == (0.8, stored_box([1, 0, 3, 2]))
        assert found.frames[0].description is None
        session.execute(update(KeyframeRow).values(description="a tent", quality=0.1 + 0.2))
        output = clip_contents(session, scope(3), clips).frames[0]
        assert (output.description, output.quality) == ("a tent", 0.1 + 0.2)
        assert clip_contents(session, scope(1), clips).texts == []
        assert found.sightings == [(60_500, 62_000, "face", 0)]
        assert clip_contents(session, scope(3), [0]).sightings == []
        frame = clip_contents(session, scope(3), [2]).frames[0]
        assert frame_vectors(session, [frame.id]) == {}
        session.execute(update(KeyframeRow).values(embedding=[0.5, 0.5], image_encoder="clip"))
        vector, made_by = frame_vectors(session, [frame.id])[frame.id]
        assert (list(vector), made_by) == ([0.5, 0.5], "clip")


def test_cited_rows_are_those_in_scope(watched: Store) -> None:
    recording(watched, V, [61.0])
    ids = add_event_graph(watched, V, [Event(0, "all", "everything", (0, 2), since=2)])
    with watched.begin() as session:
        every = list(session.scalars(select(MemoryRow.id).where(MemoryRow.video_id == V)))
        assert {one.text for one in cited_memories(session, scope(1), every)} == {
            "first",
            "second",
        }
        assert {one.text for one in cited_memories(session, scope(2), every)} == {
            "second",
            "third",
        }
        assert cited_memories(session, scope(3, W), every) == []
        assert cited_segments(session, scope(1), [ids[0]]) == []
        assert cited_segments(session, scope(2), [ids[0]]) == [
            (ids[0], "all", "everything", 0, 3 * CLIP_MS)
        ]
        frame = clip_contents(session, scope(3), [2]).frames[0]
        assert cited_frames(session, scope(1), [frame.id]) == []
        assert cited_frames(session, scope(2), [frame.id]) == [frame]


def test_a_new_edge_is_seen_by_the_next_search(watched: Store) -> None:
    searching = Retrievers(watched, WordToolbox(), Settings())
    view = MemoryView(scopes=(scope(3),))
    ids = add_event_graph(
        watched, V, [Event(0, "one", "soup", (0,), 1), Event(1, "two", "tent", (1,), 1)]
    )
    assert searching.search(view, Mode.EVENT, "soup").neighbours == ()
    patch_with_edge(watched, V, ids[0], ids[1], at_clip=3)
    (beside,) = searching.search(view, Mode.EVENT, "soup").neighbours
    assert beside.label == "two"
