"""What strategies build of a video: cut with a span, gone with a person, and back with them."""

from __future__ import annotations

from typing import Any

import pytest
import typer
from sqlalchemy import delete, func, select, update
from starlette.testclient import TestClient

from agent.harness.inform import by_evidence, pictures_of
from cli.answers import open_images
from domain.asking import Citation, Evidence
from domain.memories import MemoryView, Scope
from domain.moments import Moment
from domain.time import TimeSpan
from domain.trajectory import EvidenceRetrieved
from library.moments import cited_images, moments_of
from retrieval.quotes_and_citations import cite
from store.database import Store
from store.queries.backup import video_records
from store.queries.builds import built_refs, cut_builds, delete_builds, read_built
from store.queries.cut_clips import refs_in as cut_refs
from store.queries.keyframes import images_in_answers
from store.tables.schema import (
    BuildRow,
    EntityRow,
    FrameRow,
    NodeRevisionRow,
    NodeRow,
    ObjectRow,
    RelationRow,
    ScreenTextRow,
    TrajectoryEventRow,
    TrajectoryRow,
)
from tests.support.full_video import ask, fill
from tests.support.picture_cards import Card, jpeg

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
    assert ([b["through_clip"] for b in left["build"]], len(left["frame"])) == ([1], 1)
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


# Refs of kept frames and entities: read in their video up to their clip, and gone with it.


CARD = jpeg(Card("red", "417", "circle"))


@pytest.fixture
def library(store: Store) -> Store:
    fill(store, A)
    fill(store, B)
    blob = store.blobs.put(CARD)
    with store.begin() as session:
        session.execute(update(FrameRow).values(blob=blob))
    return store


def view(video: str, last_clip: int) -> MemoryView:
    return MemoryView(scopes=(Scope(video=video, last_clip=last_clip),))


def frame_of(store: Store, video: str = A) -> str:
    with store.begin() as session:
        return f"f{session.scalars(select(FrameRow.id).where(FrameRow.video_id == video)).one()}"


def entities_of(store: Store, video: str = A) -> list[str]:
    """The refs of a person known from the first clip on, and of a group from the second on."""
    row = EntityRow
    with store.begin() as session:
        found = session.scalars(
            select(row.id).where(row.video_id == video).order_by(row.from_clip)
        ).all()
    return [f"e{one}" for one in found]


def cited(store: Store, seen: MemoryView, *refs: str) -> list[Citation]:
    with store.begin() as session:
        return list(cite(session, seen, refs).citations)


def test_a_kept_frame_is_cited_with_its_time_and_what_was_recognised(library: Store) -> None:
    ref = frame_of(library)
    recognise(library, 31_600)
    (found,) = cited(library, view(A, 2), f"[{ref}]")
    assert (found.ref, found.video, found.clip) == (ref, A, 1)
    assert found.span == TimeSpan.of(31_000, 32_000)
    assert all(what in found.text for what in ("Ann", "dog", "EXIT"))
    recognise(library, 33_000)
    assert not any(what in cited(library, view(A, 2), ref)[0].text for what in ("dog", "EXIT"))


def recognise(store: Store, time_ms: int) -> None:
    """Put a dog and the text EXIT on a keyframe of that time."""
    with store.begin() as session:
        session.execute(update(ObjectRow).values(time_ms=time_ms, clip=1, label="dog"))
        session.execute(update(ScreenTextRow).values(time_ms=time_ms, clip=1))


def test_an_entity_is_cited_with_its_name_and_type_where_it_is_first_named(library: Store) -> None:
    person, group = entities_of(library)
    with library.begin() as session:
        session.execute(update(EntityRow).values(attributes={"n": 1, "wears": "a red coat"}))
    first, second = cited(library, view(A, 2), person, group)
    assert first.text.endswith("(person): wears: a red coat")
    assert second.text.endswith("(group): wears: a red coat")
    assert (first.clip, second.clip, second.span.start_ms) == (0, 1, 30_000)


def test_what_is_of_another_video_or_later_is_not_read(library: Store) -> None:
    frame, (person, group) = frame_of(library), entities_of(library)
    both = MemoryView(scopes=(*view(A, 0).scopes, *view(B, 2).scopes))
    assert [c.ref for c in cited(library, view(A, 1), frame, group)] == [frame, group]
    for other in (view(A, 0), view(B, 2), both):
        assert cited(library, other, frame, group) == []
    assert [c.ref for c in cited(library, view(A, 0), person)] == [person]
    moment = Citation(ref=frame, video=A, span=TimeSpan.of(31_000, 32_000), text="x")
    assert moments_of(library, [moment])[0].image == f"/media/frames/{A}/{frame[1:]}"
    assert moments_of(library, [moment], 30_000)[0].image is None
    assert moments_of(library, [moment.model_copy(update={"video": B})])[0].image is None


def test_a_kept_frame_is_served_for_its_own_video_only(client: TestClient, library: Store) -> None:
    number = frame_of(library)[1:]
    found = client.get(f"/media/frames/{A}/{number}")
    assert (found.status_code, found.content) == (200, CARD)
    assert found.headers["content-type"] == "image/jpeg"
    assert client.get(f"/media/frames/{B}/{number}").status_code == 404
    assert client.get(f"/media/keyframes/{A}/{number}").content != CARD
    with library.begin() as session:
        (blob,) = set(session.scalars(select(FrameRow.blob)))
        cut_builds(session, A, [1])
    assert client.get(f"/media/frames/{A}/{number}").status_code == 404
    library.blobs.delete(blob)
    lost = client.get(f"/media/frames/{B}/{frame_of(library, B)[1:]}")
    assert lost.status_code == 404
    assert "lost or damaged" in lost.json()["detail"]


def test_cited_frames_are_opened(library: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def launch(path: str) -> int:
        opened.append(path)
        return 0

    monkeypatch.setattr(typer, "launch", launch)
    ref = frame_of(library)
    entity = Moment(ref="e1", video=A, span=TimeSpan.of(0, 1))
    frame = Moment(ref=ref, video=A, span=TimeSpan.of(31_000, 32_000))
    (path,) = cited_images(library, (entity, frame))
    open_images([path])
    assert (opened, path.name) == ([str(path)], f"{ref}.jpg")
    assert path.read_bytes() == CARD


def test_a_deletion_names_the_refs_of_what_goes(library: Store) -> None:
    frame, (person, group) = frame_of(library), entities_of(library)
    with library.begin() as session:
        gone = cut_refs(session, A, [1]) | built_refs(session, A, 1)
        assert {frame, group} <= gone
        assert person not in gone
        cut_builds(session, A, [1])
    assert [c.ref for c in cited(library, view(A, 2), frame, person, group)] == [person]


def test_frames_that_answers_cite_are_known_to_retention(library: Store) -> None:
    ask(library, "1" * 8, "what is there?", A)
    answer = {"text": "a card [f71]", "confidence": 0.5, "searched": ["k7", "prof12"]}
    with library.begin() as session:
        session.execute(delete(TrajectoryEventRow))
        session.execute(update(TrajectoryRow).values(answer=answer))
        assert images_in_answers(session, A) == {"f71", "k7"}
        assert images_in_answers(session, B) == set()


def found(*refs: str, images: tuple[str, ...]) -> EvidenceRetrieved:
    evidence = tuple(
        Evidence(ref=ref, video=A, span=TimeSpan.of(1000 * n, 1000 * n), text="x", score=0.5)
        for n, ref in enumerate(refs)
    )
    return EvidenceRetrieved(
        round=1, mode="visual", query="x", evidence=evidence, images=images, nothing_close=False
    )


def test_frames_become_pictures_with_their_refs_and_times() -> None:
    event = found("n4", "f12", "e3", "k5", "r6", images=("one", "two"))
    pictures = pictures_of(event)
    assert [(p.blob, p.label) for p in pictures] == [("one", "[f12] 00:01"), ("two", "[k5] 00:03")]
    assert by_evidence(pictures, event.evidence) == list(pictures)
