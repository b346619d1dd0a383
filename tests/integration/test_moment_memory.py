"""What each strategy remembers of a moment: over the API and on the video's page."""

from __future__ import annotations

import re
from typing import Any

import pytest
from sqlalchemy import select, update
from starlette.testclient import TestClient

from store.database import Store
from store.tables.schema import FrameRow, KeyframeRow, MemoryRow, RelationRow
from tests.support.api import problem
from tests.support.app_pages import app_over, open_page, words
from tests.support.asking import WordToolbox
from tests.support.full_video import fill
from tests.support.picture_cards import Card, jpeg

A, B = "a" * 16, "b" * 16
CARD = jpeg(Card("red", "417", "circle"))


@pytest.fixture
def library(store: Store) -> Store:
    """Two videos of which a strategy called captions built something."""
    fill(store, A)
    fill(store, B)
    blob = store.blobs.put(CARD)
    with store.begin() as session:
        for table in (FrameRow, KeyframeRow):
            session.execute(update(table).values(blob=blob))
        of_clip = update(MemoryRow).where(MemoryRow.clip == 1)
        session.execute(of_clip.values(start_ms=44_000, end_ms=46_000))
    return store


def memory(client: TestClient, at: str, **more: str) -> dict[str, dict[str, Any]]:
    told = client.get(f"/videos/{A}/memory", params={"at": at, **more}).json()
    assert told["video"] == A
    return {one["strategy"]: one for one in told["memory"]}


def test_a_moment_has_what_all_share_and_what_each_built(client: TestClient) -> None:
    found = memory(client, "0:45")
    assert list(found) == ["", "captions"]
    assert {node["kind"] for node in found[""]["nodes"]} == {"event", "line"}
    own = found["captions"]
    assert [(node["label"], node["text"]) for node in own["nodes"]] == [
        ("caption 1", "what happened by clip 2")
    ]
    assert all(node["start_s"] <= 45 < node["end_s"] for node in own["nodes"])
    assert own["relations_total"] == len(own["relations"]) > 0
    assert {ref[0] for ref in own["entities"]} == {"e"}
    (frame,) = own["frames"]
    assert frame["source"] == "it differs from the last"
    assert client.get(frame["image"]).content == CARD
    earlier = memory(client, "0:05", as_of="0:30")["captions"]
    assert [node["label"] for node in earlier["nodes"]] == ["caption 0"]
    assert memory(client, "0:05")["captions"]["nodes"] == [], "it was closed since"


def test_only_what_was_known_by_then_is_remembered(client: TestClient) -> None:
    assert memory(client, "0:45", as_of="0:30")[""]["nodes"] == []
    (node,) = memory(client, "0:45", as_of="1:00")["captions"]["nodes"]
    assert node["text"] == "what happened by clip 1"
    problem(client.get(f"/videos/{A}/memory", params={"at": "soon"}), 422, "input")
    assert memory(client, "9:00:00") == {"": memory(client, "9:00:00")[""]}


def test_relation_that_was_closed_by_then_does_not_hold(client: TestClient, library: Store) -> None:
    before = memory(client, "1:05")["captions"]["relations_total"]
    with library.begin() as session:
        row = RelationRow
        still = select(row.id).where(row.video_id == A, row.to_clip.is_(None)).limit(1)
        session.execute(update(row).where(row.id.in_(still)).values(to_clip=2))
    assert memory(client, "1:05")["captions"]["relations_total"] == before - 1


def test_the_page_shows_the_addressed_one(library: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with app_over(library, monkeypatch, WordToolbox):
        shown = words(open_page("video", video=A, show="Memory", t="0:45"))
        assert "What is remembered of 0:45" in shown
        assert "Shared by all strategies" in shown
        assert "what happened by clip 2" in shown
        assert "Relations that hold then" in shown
        assert not re.search(r"\b[nerfk]\d+\b", shown)  # No names of rows.
        again = words(open_page("video", video=A, show="Memory", t="0:05"))
    assert "what happened by clip 2" not in again
