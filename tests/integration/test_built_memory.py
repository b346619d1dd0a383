"""What strategies build of a video: cut with a span, gone with a person, and back with them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import func, select, update

from store.database import Store
from store.queries.builds import cut_builds, delete_builds, read_built
from store.queries.records import video_records
from store.tables.schema import BuildRow, EntityRow, FrameRow, NodeRevisionRow, NodeRow, RelationRow
from tests.support.full_video import fill

A, B = "a" * 16, "b" * 16
KINDS = ("build", "frame", "node_revision", "entity", "relation")


def built(store: Store, video: str = A) -> dict[str, list[Any]]:
    with store.begin() as session:
        records = list(video_records(session, video))
    return {kind: [r for r in records if r["row"] == kind] for kind in KINDS}


def test_what_was_built_from_a_clip_on_goes_with_it(store: Store) -> None:
    fill(store, A)
    fill(store, B)
    other = built(store, B)
    with store.begin() as session:
        cut_builds(session, A, [2])
    left = built(store)
    assert [(n["number"], n["from_clip"], n["to_clip"]) for n in left["node_revision"]] == [
        (0, 0, 1),
        (1, 1, None),
    ]
    assert [(r["from_clip"], r["to_clip"]) for r in left["relation"]] == [(1, None)]
    assert [e["from_clip"] for e in left["entity"]] == [0, 1]
    assert [b["through_clip"] for b in left["build"]] == [1]
    assert len(left["frame"]) == 1
    assert built(store, B) == other


def test_frames_of_other_clips_stay(store: Store) -> None:
    fill(store, A)
    with store.begin() as session:
        session.execute(update(FrameRow).values(clip=2))
        cut_builds(session, A, [0])
    left = built(store)
    assert [f["clip"] for f in left["frame"]] == [2]
    assert not left["node_revision"]
    assert not left["entity"]
    assert not left["relation"]
    assert [b["through_clip"] for b in left["build"]] == [-1]
    with store.begin() as session:
        assert session.scalar(select(func.count()).select_from(NodeRow)) == 0


def test_all_that_was_built_of_one_video_is_deleted(store: Store) -> None:
    fill(store, A)
    fill(store, B)
    with store.begin() as session:
        delete_builds(session, A)
        for table in (BuildRow, FrameRow, NodeRow, EntityRow, RelationRow):
            assert set(session.scalars(select(table.video_id))) == {B}
        revisions = session.scalar(select(func.count()).select_from(NodeRevisionRow))
    assert revisions == len(built(store, B)["node_revision"])


def test_children_of_nodes_and_attributes_of_entities_are_read_back(store: Store) -> None:
    fill(store, A)
    with store.begin() as session:
        memory = read_built(session, A, "captions")
    assert [(n.number, n.children) for n in memory.nodes] == [(0, (0,)), (1, (1,)), (1, (1,))]
    assert [e.attributes for e in memory.entities] == [{"n": 0}, {"n": 1}]
