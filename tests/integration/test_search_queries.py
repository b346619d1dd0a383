"""Reads of a search from the store: in order, exact, as of a clip, with vectors unchanged."""

from __future__ import annotations

import pytest
from sqlalchemy import update

from domain.asking import Mode
from domain.memories import MemoryView, Scope
from domain.settings import Settings
from memory.writers.clip_page import subsample
from retrieval.retrievers import Retrievers
from store.database import Store
from store.queries.characters import add_name, people_as_of
from store.queries.clips import end_of_memory
from store.queries.outline import contents_of
from store.queries.search import edges_of_segment
from store.tables.schema import CharacterMemberRow, EdgeRow
from tests.support.asking import WordToolbox
from tests.support.remembered import (
    CLIP_MS,
    Event,
    Said,
    add_event_graph,
    identity_of,
    name,
    patch_with_edge,
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


def test_people_are_known_as_of_a_clip(watched: Store) -> None:
    name(watched, V, 0, "Ada", "<face_0>", since=1)
    with watched.begin() as session:
        whose = identity_of(session, V, "<face_0>")
        add_name(session, V, whose, "Ada L.", "caption", 3)
        add_name(session, V, whose, "Eda", "said", 3)
        assert people_as_of(session, scope(0)) == []
        assert [one.name for one in people_as_of(session, scope(2))] == ["Ada"]
        assert [one.name for one in people_as_of(session, scope(3))] == ["Ada L."]
        assert people_as_of(session, scope(3))[0].faces == (0,)
        session.execute(update(CharacterMemberRow).values(to_clip=3))
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
