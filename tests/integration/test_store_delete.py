"""Deleting a video leaves nothing of it and takes nothing of another."""

from __future__ import annotations

import hashlib
import json
import threading
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select, text

from domain.errors import DatabaseError, InputError
from domain.skills import JudgedTrajectory, Signal
from store.database import Store, open_store, remove_orphaned_blobs, remove_unused_blobs
from store.export import export_video
from store.migrations import HEAD
from store.queries.backup import dump_video
from store.queries.blobs import lock_blobs_shared
from store.queries.evaluations import run_results
from store.queries.learning import add_observations, put_judgement
from store.queries.videos import delete_video
from store.tables.schema import Base, BlobRow
from tests.support.evaluation_rows import evaluated
from tests.support.full_video import SHARED, ask, fill

# Their trajectories are made up.
pytestmark = pytest.mark.usefixtures("tampered")

A, B = "a" * 16, "b" * 16
NEW_VIDEO = (
    "INSERT INTO videos SELECT :b, 'new', '', 1, 1, 1, true, true, 'local', 'done', '', '{}', now()"
)


def delete(store: Store, video_id: str) -> None:
    with store.begin() as session:
        unused = delete_video(session, video_id)
    remove_unused_blobs(store, unused)


OF_NO_VIDEO = {
    *("audit", "taken", "library", "saved_searches", "skills", "eval_runs", "eval_batches"),
    *("group_members", "enforced_rights"),
}


def counts(store: Store) -> dict[str, int]:
    with store.begin() as session:
        return {
            table.name: session.execute(select(func.count()).select_from(table)).scalar_one()
            for table in Base.metadata.sorted_tables
            if table.name not in OF_NO_VIDEO
        }


def files(store: Store) -> list[Path]:
    return [path for path in store.home.blobs.rglob("*") if path.is_file()]


def test_the_only_video_leaves_no_row_and_no_file(store: Store) -> None:
    fill(store, A)
    ask(store, "t1", "why?", A)
    judged = JudgedTrajectory(trajectory="t1", question_type="why", right=False)
    with store.begin() as session:
        put_judgement(session, judged)
        add_observations(session, judged, [Signal.ERROR])
    evaluated(store, "t1", A)
    assert all(counts(store).values()), "the example should have rows in every table"
    delete(store, A)
    assert not any(counts(store).values())
    assert files(store) == []


def test_a_run_over_two_videos_keeps_what_is_of_the_other(store: Store) -> None:
    fill(store, A)
    fill(store, B, "kept")
    ask(store, "t1", "why?", A)
    ask(store, "t2", "why?", B)
    evaluated(store, "t1", A)
    evaluated(store, "t2", B)
    delete(store, A)
    with store.begin() as session:
        assert [one.slot.video for one in run_results(session, "run")] == [B]


def test_another_video_keeps_all_that_was_its_own(store: Store) -> None:
    fill(store, B, "kept")
    ask(store, "t1", "about the kept", B)
    alone, rows = export_lines(store, B), counts(store)
    with store.begin() as session:
        kept = list(dump_video(session, B))
    fill(store, A)
    ask(store, "t2", "about the deleted", A)
    delete(store, A)
    assert (counts(store), export_lines(store, B)) == (rows, alone)
    with store.begin() as session:
        assert list(dump_video(session, B)) == kept
        shas = list(session.scalars(select(BlobRow.sha256)))
    assert SHARED in [store.blobs.get(sha) for sha in shas]


def test_a_trajectory_over_both_videos_goes_with_either(store: Store) -> None:
    fill(store, A)
    fill(store, B, "kept")
    ask(store, "t1", "about both", A, B)
    ask(store, "t2", "about the kept", B)
    delete(store, A)
    found = counts(store)
    assert (found["trajectories"], found["questions"], found["trajectory_events"]) == (1, 1, 1)
    with store.begin() as session:
        output = session.execute(text("SELECT content->>'content' FROM messages ORDER BY 1"))
        assert list(output.scalars()) == ["about the kept", "seen in kept", "you are Homer"]


def test_a_question_that_was_also_asked_of_another_video_stays(store: Store) -> None:
    fill(store, A)
    fill(store, B, "kept")
    ask(store, "t1", "why?", A)
    ask(store, "t2", "why?", B)
    with store.begin() as session:
        session.execute(text("UPDATE trajectories SET question_id = 1"))
    delete(store, A)
    with store.begin() as session:
        kept = session.execute(
            text("SELECT t.id, q.text FROM trajectories t JOIN questions q ON true")
        )
        assert ("t2", "why?") in [tuple(row) for row in kept]


def export_lines(store: Store, video_id: str) -> list[str]:
    out = store.home.root / f"{video_id}.zip"
    export_video(store, video_id, out)
    with zipfile.ZipFile(out) as archive:
        names = [name for name in archive.namelist() if name.endswith(".jsonl")]
        return [line for name in names for line in archive.read(name).decode().splitlines()]


def test_an_export_holds_content_the_blobs_and_what_was_asked(store: Store, tmp_path: Path) -> None:
    fill(store, A)
    fill(store, B, "another")
    ask(store, "t1", "why?", A)
    out = tmp_path / "full.zip"
    export_video(store, A, out)
    with zipfile.ZipFile(out) as archive:
        assert archive.testzip() is None
        blobs = {n for n in archive.namelist() if n.startswith("blobs/")}
        head, *lines = [json.loads(line) for line in archive.read("rows.jsonl").splitlines()]
        assert SHARED in [archive.read(name) for name in blobs]
    assert head == {"video": A, "revision": HEAD, "encoders": [None, None]}
    rows: dict[str, list[dict[str, Any]]] = {}
    for table, row in lines:
        rows.setdefault(table, []).append(row)
    assert json.loads(rows["clips"][0]["embedding"])[0] == pytest.approx(0.6, abs=1e-3)
    assert {f"blobs/{row['sha256']}" for row in rows["blobs"]} == blobs
    assert [row["text"] for row in rows["questions"]] == ["why?"]
    assert [row["payload"]["text"] for row in rows["trajectory_events"]] == ["why?"]
    assert {row["content"]["content"] for row in rows["messages"]} == {
        "you are Homer",
        "why?",
        "seen in full",
    }


def test_an_export_that_fails_leaves_no_file(store: Store, tmp_path: Path) -> None:
    fill(store, A)
    with pytest.raises(InputError, match="cannot be written"):
        export_video(store, A, tmp_path / "no" / "such" / "folder.zip")
    for path in files(store):
        path.unlink()
    with pytest.raises(DatabaseError, match="missing"):
        export_video(store, A, tmp_path / "broken.zip")
    assert list(tmp_path.glob("*.zip")) == list(tmp_path.glob(".*")) == []


def test_a_sweep_removes_old_files_without_a_row_and_nothing_else(store: Store) -> None:
    fill(store, A)
    used = set(files(store))
    orphan = store.blobs.put(b"left by a killed ingestion")
    Path(f"{store.blobs.path(orphan)}.part-1-2-3").write_bytes(b"left by")
    assert remove_orphaned_blobs(store, older_s=3600) == 0
    assert store.blobs.exists(orphan)
    assert (remove_orphaned_blobs(store), set(files(store))) == (2, used)


def test_a_database_never_removes_the_blobs_of_another_in_the_same_home(
    store: Store, make_database: Callable[[], str]
) -> None:
    fill(store, A)
    with open_store(store.home, make_database()) as other:
        with other.begin() as session:
            session.execute(text("UPDATE library SET id = 'another'"))
        fill(other, A)
        fill(other, B, "another")
        assert len(files(store)) == 5
        for video_id in (A, B):
            delete(other, video_id)
        remove_orphaned_blobs(other)
    assert len(files(store)) == 2
    assert store.blobs.exists(hashlib.sha256(SHARED).hexdigest())


def test_a_sweep_waits_for_a_clip_that_is_being_written(store: Store) -> None:
    sweeping = threading.Thread(target=remove_orphaned_blobs, args=(store,))
    with store.begin() as session:
        lock_blobs_shared(session)
        sha = store.blobs.put(b"a frame")
        sweeping.start()
        time.sleep(0.3)
        session.execute(text(NEW_VIDEO), {"b": B})
        session.add(BlobRow(video_id=B, sha256=sha, size=7))
    sweeping.join(30)
    assert store.blobs.get(sha) == b"a frame"


def test_putting_an_old_orphan_again_saves_it_from_the_sweep(store: Store) -> None:
    import os

    orphan = store.blobs.put(b"used once more")
    os.utime(store.blobs.path(orphan), (1, 1))
    assert store.blobs.put(b"used once more") == orphan
    assert remove_orphaned_blobs(store, older_s=60) == 0
    assert store.blobs.exists(orphan)


def test_a_blob_that_another_video_is_just_taking_up_is_not_removed(store: Store) -> None:
    """The writer puts a blob that is there already; its old video is deleted; then it commits."""
    fill(store, A)
    with store.begin() as session:
        unused = delete_video(session, A)
    dropping = threading.Thread(target=remove_unused_blobs, args=(store, unused))
    with store.begin() as session:
        lock_blobs_shared(session)
        sha = store.blobs.put(SHARED)
        dropping.start()
        time.sleep(0.3)
        session.execute(text(NEW_VIDEO), {"b": B})
        session.add(BlobRow(video_id=B, sha256=sha, size=len(SHARED)))
    dropping.join(30)
    assert (store.blobs.get(sha), len(files(store))) == (SHARED, 1)
