"""A marker in every kind of content, then a deletion, then a scan of all there is: no trace."""

from __future__ import annotations

import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import text

from domain.time import TimeSpan
from flows.removal import delete_video, delete_video_span, preview_span_deletion
from flows.workspace import Workspace
from library.removal import export_video
from models.profile import load_profile
from people.forget import forget
from store.backup import back_up
from store.database import Store
from tests.support.library import Quiet
from tests.support.marked_library import MARK, NUMBER, VIDEO, contents, plant, sorted_out, traces
from tests.support.memory import WordVectors

# Their trajectories are made up.
pytestmark = pytest.mark.usefixtures("tampered")

CLIP = 1


class ThreeNumbers:
    """Text vectors as short as those that are planted."""

    name, dimensions = "three", 3
    languages: tuple[str, ...] = ()

    def embed(self, texts: Any) -> Any:
        return WordVectors().embed(texts)[:, :3]


@pytest.fixture
def marked(store: Store) -> Store:
    plant(store, VIDEO)
    return store


def columns() -> set[str]:
    return {f"{table.name}.{column.name}" for table, column in contents()}


def test_every_column_of_content_is_sorted_and_has_the_marker(marked: Store) -> None:
    assert sorted_out() <= columns(), "a column that is no more is still sorted"
    planted = columns() - sorted_out()
    found = traces(marked)
    assert planted <= found, "plant it, or say in STRUCTURE why there is no content in it"
    beside = {"blobs", "uploads", "logs", "run"}
    assert found - planted == {*beside, "memories.words"}


def test_a_deleted_video_leaves_no_trace(marked: Store) -> None:
    delete_video(marked, VIDEO)
    assert traces(marked) == set()


def test_postgres_keeps_no_samples_of_what_was_said(marked: Store) -> None:
    """Statistics outlive the rows that they were taken of, until enough others were changed."""
    seen = "SELECT string_agg(s::text, ' ') FROM pg_stats AS s WHERE schemaname = 'public'"
    with marked.begin() as session:
        session.execute(text("ANALYZE"))
        statistics = session.scalar(text(seen)) or ""
    assert "memories" in statistics
    assert MARK.lower() not in statistics.lower()
    assert f"[{NUMBER}," not in statistics


def exported(store: Store, folder: Path) -> bytes:
    export_video(store, VIDEO, folder / "video.zip")
    back_up(store, folder / "library", Quiet())
    with zipfile.ZipFile(folder / "video.zip") as archive:
        held = [archive.read(name) for name in archive.namelist()]
    with zipfile.ZipFile(folder / "library") as archive:
        return b"".join([*held, *(archive.read(name) for name in archive.namelist())])


OF_THE_WHOLE = {
    *(f"videos.{name}" for name in ("title", "path", "error", "subtitles", "remarks")),
    "streams.source",
}
OF_PEOPLE = {"corrections.told", "corrections.outcomes", "alerts.name", "alerts.question"}
"""What a person said of people who are met outside of the span too, and what they wait for."""


def test_a_deleted_span_leaves_no_trace_in_later_exports(marked: Store, tmp_path: Path) -> None:
    # The marker is taken from what is of other clips: there it is none of the span's.
    with marked.begin() as session:
        for table, column in contents():
            name = f"{table.name}.{column.name}"
            if name in sorted_out() or name in OF_THE_WHOLE | OF_PEOPLE:
                continue
            learned = {"character_names", "node_revisions", "entities", "relations"}
            clip = "from_clip" if table.name in learned else "clip"
            if clip not in table.c or table.name == "model_calls":
                continue
            plain = "NULL" if column.nullable else {"JSONB": "'[]'"}.get(str(column.type), "'x'")
            output = f"UPDATE {table.name} SET {column.name} = {plain} WHERE {clip} <> {CLIP}"  # noqa: S608
            session.execute(text(output))
        session.execute(text("UPDATE videos SET path = '/a.mp4', title = 'a', error = NULL"))
        session.execute(text("UPDATE videos SET subtitles = NULL, remarks = '[]'"))
        session.execute(text("UPDATE streams SET source = 'rtsp://door'"))
        session.execute(text("DELETE FROM corrections"))
        session.execute(text("UPDATE alerts SET name = 'mine', question = 'a cup'"))
        others = "SELECT id FROM sightings WHERE clip <> 1"
        session.execute(text(f"DELETE FROM exemplars WHERE sighting_id IN ({others})"))  # noqa: S608
        session.execute(text("UPDATE sightings SET blob = NULL WHERE clip <> 1"))
        session.execute(text("UPDATE keyframes SET blob = repeat('0', 64) WHERE clip <> 1"))
        session.execute(text("UPDATE identity_statements SET clip = 1"))
    assert {"utterances.text", "segment_revisions.summary", "patches.applied"} < traces(marked)
    toolbox: Any = SimpleNamespace(text=ThreeNumbers())
    toolbox.of_library = lambda *_: toolbox
    workspace = Workspace(marked.home, marked, load_profile("local"), toolbox)
    span = TimeSpan.of(31_000, 32_000)
    delete_video_span(workspace, preview_span_deletion(marked, VIDEO, span).cut.video, span)
    assert traces(marked) == {"logs", "run"}, "a log says what was watched, and nothing of it"
    held = exported(marked, tmp_path)
    assert MARK.encode() not in held
    # With the bracket of a vector: by itself it may be a part of any time or digest.
    assert f"[{NUMBER},".encode() not in held


def test_a_forgotten_person_leaves_no_trace_but_the_name_of_the_file(marked: Store) -> None:
    with marked.begin() as session:
        theirs = "SELECT identity_id FROM character_members WHERE number = 0"
        others = f"identity_id NOT IN ({theirs})"
        session.execute(text(f"UPDATE character_names SET name = 'Omar' WHERE {others}"))  # noqa: S608
        session.execute(text(f"UPDATE exemplars SET vector = '[1,1,1]' WHERE {others}"))  # noqa: S608
        session.execute(text(f"UPDATE sightings SET blob = NULL WHERE {others}"))  # noqa: S608
        session.execute(text("UPDATE keyframes SET time_ms = 200 WHERE clip = 0"))
        away = "time_ms > 5000"
        pictures = "blob = '0', embedding = NULL, likeness_vector = NULL, next_embedding = NULL"
        session.execute(text(f"UPDATE keyframes SET {pictures} WHERE {away}"))  # noqa: S608
    done = forget(marked, VIDEO, "0", ThreeNumbers())
    left = traces(marked)
    assert sorted(left - {"videos.path", "streams.source", "uploads", "logs", "run"}) == []
    assert done.path is not None
    assert MARK in done.path
