"""What searching reads from the store: in order, exact, as of a clip, with vectors that survive."""

from __future__ import annotations

import numpy as np
import pytest
from sqlalchemy import update

from domain.asking import Mode
from domain.errors import NotFound
from domain.memories import MemoryView, Scope
from domain.settings import Settings
from people.corrected import people_as_of
from retrieval.event_search import EventsInView
from retrieval.index_cache import IndexCache
from retrieval.retrievers import Retrievers
from retrieval.view_index import panorama
from store.database import Store
from store.queries.clip_contents import frame_vectors, objects_on, on_clips, stored_box
from store.queries.forget import mark_rewritten
from store.queries.search import (
    cells_between,
    cited_frames,
    cited_memories,
    cited_segments,
    edges_of_segment,
    lines_between,
    memories_mentioning,
    segment_revisions,
    superseded_memories,
)
from store.queries.stamps import stamps
from store.tables.schema import CharacterNameRow, CharacterRow, EdgeRow, KeyframeRow, MemoryRow
from tests.support.asking import WordToolbox
from tests.support.remembered import (
    CLIP_MS,
    SIZE,
    Event,
    Said,
    WordEmbedder,
    add_event_graph,
    film,
    name,
    patch_with_edge,
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


def test_lines_come_in_order_with_their_vectors(watched: Store) -> None:
    with watched.begin() as session:
        found = lines_between(session, V, -1, 3)
    texts = ["first", "second", "third", "<face_0> and <face_1> meet"]
    assert [row.text for row in found.rows] == texts
    assert [row.clip for row in found.rows] == [0, 0, 2, 3]
    assert [row.superseded_at for row in found.rows] == [2, None, None, None]
    assert found.rows[2].speaker == "Ann"
    assert found.vectors.shape == (4, SIZE)
    assert np.allclose(found.vectors, WordEmbedder().embed(texts), atol=1e-3)


@pytest.mark.parametrize(
    ("after", "last", "texts"),
    [
        (-1, 0, ["first", "second"]),
        (0, 2, ["third"]),
        (2, 2, []),
        (2, 99, ["<face_0> and <face_1> meet"]),
    ],
)
def test_lines_of_some_clips(watched: Store, after: int, last: int, texts: list[str]) -> None:
    with watched.begin() as session:
        assert [row.text for row in lines_between(session, V, after, last).rows] == texts


def test_a_line_without_a_vector_has_zeros(watched: Store) -> None:
    with watched.begin() as session:
        bare = update(MemoryRow).where(MemoryRow.text == "first").values(embedding=None)
        session.execute(bare)
        found = lines_between(session, V, -1, 3)
    assert not found.vectors[0].any()
    assert found.vectors[1].any()


def test_lines_of_which_none_has_a_vector(watched: Store) -> None:
    with watched.begin() as session:
        session.execute(update(MemoryRow).values(embedding=None))
        assert lines_between(session, V, -1, 3).vectors.shape == (4, 0)


def test_what_is_not_there_reads_as_nothing(watched: Store) -> None:
    with watched.begin() as session:
        assert lines_between(session, V, 5, 9).rows == []
        assert len(segment_revisions(session, V).rows) == 0
        assert stamps(session, {V: 3})[V].events[2:] == (0, 0, 0)
        assert people_as_of(session, scope(3)) == []
        assert edges_of_segment(session, scope(3), 1) == []
        assert on_clips(session, scope(3), []) == ([], [], [], [])
        with pytest.raises(NotFound, match="homer videos"):
            stamps(session, {"0" * 16: 0})


def test_cells_are_the_clips_in_order(watched: Store) -> None:
    with watched.begin() as session:
        cells = cells_between(session, V, 0, 2)
    assert cells == [(1, CLIP_MS, 2 * CLIP_MS), (2, 2 * CLIP_MS, 3 * CLIP_MS)]


def test_superseded_lines_are_named_with_their_clip(watched: Store) -> None:
    with watched.begin() as session:
        first = lines_between(session, V, -1, 0).rows[0].id
        assert superseded_memories(session, V) == {first: 2}
        assert superseded_memories(session, W) == {}


def test_mentions_are_found_by_tag_within_scope_and_clips(watched: Store) -> None:
    with watched.begin() as session:
        meeting = lines_between(session, V, 2, 3).rows[0].id
        assert memories_mentioning(session, scope(3), ["<face_1>"]) == {meeting}
        assert memories_mentioning(session, scope(3), ["<face_1>", "<face_0>"]) == {meeting}
        assert memories_mentioning(session, scope(2), ["<face_1>"]) == set()
        assert memories_mentioning(session, scope(3), ["<voice_1>"]) == set()
        assert memories_mentioning(session, scope(3, W), ["<face_1>"]) == set()


def test_people_are_known_as_of_a_clip(watched: Store) -> None:
    name(watched, V, 0, "Ada", "<face_0>", since=1)
    with watched.begin() as session:
        row = session.query(CharacterRow).one()
        later = CharacterNameRow(character_id=row.id, name="Ada L.", source="person", from_clip=3)
        misheard = CharacterNameRow(character_id=row.id, name="Eda", source="said", from_clip=3)
        session.add_all([later, misheard])
        session.flush()
        assert people_as_of(session, scope(0)) == []
        assert [one.name for one in people_as_of(session, scope(2))] == ["Ada"]
        assert [one.name for one in people_as_of(session, scope(3))] == ["Ada L."]
        assert people_as_of(session, scope(3))[0].faces == (0,)
        session.execute(update(CharacterRow).values(to_clip=3))
        assert people_as_of(session, scope(3)) == []
        assert len(people_as_of(session, scope(2))) == 1


def test_edges_hold_between_their_clips_and_cite_no_later_ones(watched: Store) -> None:
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


def test_revisions_change_the_stamp(watched: Store) -> None:
    with watched.begin() as session:
        before = stamps(session, {V: 3})[V].events[1:]
    add_event_graph(
        watched, V, [Event(0, "one", "a", (0,), 1, until=3), Event(0, "one", "b", (0, 2), 3)]
    )
    with watched.begin() as session:
        found = segment_revisions(session, V)
        assert [(r.revision, r.summary, r.to_clip) for r in found.rows] == [
            (0, "a", 3),
            (1, "b", None),
        ]
        assert found.rows[1].clips == (0, 2)
        assert found.vectors.shape == (2, SIZE)
        assert stamps(session, {V: 3})[V].events[1:] != before
        assert stamps(session, {W: 3})[W].events[2:] == (0, 0, 0)


def test_frames_with_what_is_on_them(watched: Store) -> None:
    film(watched, V, [61.0, 1.0, 91.0], {61.0: "EXIT"})
    see(watched, V, "<face_0>", 60.5, 62.0)
    film(watched, V, [], {61.0: 'say "\n\\ü🎂"'}, {61.0: ["cup", "dog"], 1.0: ["tent"]})
    with watched.begin() as session:
        clips = [0, 2, 3]
        found = on_clips(session, scope(3), clips)
        assert [f.time_ms for f in found.frames] == [1_000, 61_000, 91_000]
        assert [f.clip for f in on_clips(session, scope(2), clips).frames] == [0, 2]
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
        told = on_clips(session, scope(3), clips).frames[0]
        assert (told.description, told.quality) == ("a tent", 0.1 + 0.2)
        assert on_clips(session, scope(1), clips).texts == []
        assert found.sightings == [(60_500, 62_000, "face", 0)]
        assert on_clips(session, scope(3), [0]).sightings == []
        frame = on_clips(session, scope(3), [2]).frames[0]
        assert frame_vectors(session, [frame.id]) == {}
        session.execute(update(KeyframeRow).values(embedding=[0.5, 0.5]))
        assert list(frame_vectors(session, [frame.id])[frame.id]) == [0.5, 0.5]


def test_cited_rows_are_those_in_scope(watched: Store) -> None:
    film(watched, V, [61.0])
    ids = add_event_graph(watched, V, [Event(0, "all", "everything", (0, 2), since=2)])
    with watched.begin() as session:
        rows = lines_between(session, V, -1, 3).rows
        every = [row.id for row in rows]
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
        frame = on_clips(session, scope(3), [2]).frames[0]
        assert cited_frames(session, scope(1), [frame.id]) == []
        assert cited_frames(session, scope(2), [frame.id]) == [frame]


# The cache


def test_an_index_is_read_once_and_serves_every_earlier_view(watched: Store) -> None:
    cache = IndexCache(watched, CLIP_MS)
    first = cache.lines(scope(3))
    assert cache.lines(scope(1)) is first
    assert cache.lines(scope(3)) is first


def test_the_least_used_video_is_dropped_first(watched: Store) -> None:
    cache = IndexCache(watched, CLIP_MS, most_lines=4)
    one = cache.lines(scope(3))
    other = cache.lines(scope(0, W))
    assert cache.lines(scope(0, W)) is other
    again = cache.lines(scope(3))
    assert again is not one
    assert [row.text for row in again.lines] == [row.text for row in one.lines]


def test_segments_are_read_anew_when_they_change(watched: Store) -> None:
    cache = IndexCache(watched, CLIP_MS)

    def seen(last_clip: int) -> EventsInView:
        view = MemoryView(scopes=(scope(last_clip),))
        looked = cache.look(view.scopes)
        (events,) = cache.events(panorama(view, looked.indexes).parts, looked.stamps)
        return events

    assert seen(3).found == ()
    add_event_graph(watched, V, [Event(0, "one", "a", (0,), 1)])
    held = seen(3)
    assert [one.label for one in held.found] == ["one"]
    assert seen(3) is held
    assert seen(0).found == ()


def test_nothing_is_asked_of_a_view_until_something_is_written(watched: Store) -> None:
    cache, scopes = IndexCache(watched, CLIP_MS), [scope(3)]
    with watched.begin() as writing:
        mark_rewritten(writing, V)
        first = cache.look(scopes)
        assert cache.look(scopes) is first
        assert cache.look([scope(1)]).indexes == first.indexes
    again = cache.look(scopes)
    assert again.stamps != first.stamps
    assert again.indexes[0] is not first.indexes[0]
    assert cache.look(scopes) is again


def test_a_view_is_read_anew_after_its_video_made_room(watched: Store) -> None:
    cache = IndexCache(watched, CLIP_MS, most_lines=4)
    cache.look([scope(3)])
    other = cache.look([scope(0, W)])
    assert cache.look([scope(0, W)]) is other
    assert [line.text for line in cache.look([scope(3)]).indexes[0].lines]


def test_an_edge_that_comes_is_seen_by_the_next_question(watched: Store) -> None:
    searching = Retrievers(watched, WordToolbox(), Settings())
    view = MemoryView(scopes=(scope(3),))
    ids = add_event_graph(
        watched, V, [Event(0, "one", "soup", (0,), 1), Event(1, "two", "tent", (1,), 1)]
    )
    assert searching.search(view, Mode.EVENT, "soup").neighbours == ()
    patch_with_edge(watched, V, ids[0], ids[1], at_clip=3)
    (beside,) = searching.search(view, Mode.EVENT, "soup").neighbours
    assert beside.label == "two"


def test_many_threads_share_one_index(watched: Store) -> None:
    from concurrent.futures import ThreadPoolExecutor

    cache = IndexCache(watched, CLIP_MS)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: cache.lines(scope(3)), range(12)))
    assert all(one is found[0] for one in found)
