"""A library in one file: all of it comes back, into an empty place only, or nothing is changed."""

from __future__ import annotations

import json
import os
import re
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from uuid import uuid4
from zipfile import ZipFile

import pytest
from sqlalchemy import create_engine, text

from domain.errors import DatabaseError, InputError
from domain.trajectory import ForkEdit
from flows.removal import delete_video_rows
from graphs.replay import replay
from graphs.runner import Runner
from store.archive import Manifest
from store.backup import back_up, restore_backup, restore_library
from store.database import Store, open_store
from store.driver import parse_url
from store.embedded import EmbeddedPostgres
from store.home import Home
from store.migrations import HEAD
from store.queries.backup import set_library_id
from store.queries.blobs import own_library_id
from store.tables.schema import BlobRow
from tests.support import full_video
from tests.support.asking import WordToolbox
from tests.support.commands import run
from tests.support.library import FULL, OTHER, Quiet, all_dumps, all_images, all_rows, next_id


@pytest.fixture
def empty(empty: Store) -> Store:
    return named(empty)


def named(store: Store) -> Store:
    """The databases of the tests are copies of one, and have its name: this one gets its own."""
    with store.begin() as session:
        set_library_id(session, uuid4().hex)
    return store


def name_of(store: Store) -> str:
    with store.begin() as session:
        return own_library_id(session)


def restored(store: Store, path: Path, monkeypatch: pytest.MonkeyPatch) -> Manifest:
    monkeypatch.setenv("HOMER_DATABASE_URL", store.url)
    return restore_library(store.home, path, Quiet(), rights=True)


def test_every_row_and_every_image_comes_back(
    library: tuple[Store, str], backup: Path, empty: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = restored(empty, backup, monkeypatch)
    assert all_rows(empty) == all_rows(library[0])
    assert all_dumps(empty) == all_dumps(library[0])
    assert all_images(empty) == all_images(library[0]) != {}
    assert (output.rows("videos"), output.rows("skills"), output.missing) == (3, 1, ())
    assert name_of(empty) == name_of(library[0])
    for table in ("memories", "segments", "questions", "model_calls"):
        assert next_id(empty, table) == next_id(library[0], table)


def test_an_answer_replays_and_forks_in_the_restored_library(
    library: tuple[Store, str], backup: Path, empty: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    restored(empty, backup, monkeypatch)
    assert replay(empty, library[1]).whole
    with Runner(empty, WordToolbox()) as runner:
        forked = runner.fork(library[1], 1, ForkEdit())
    assert forked.answer is not None
    assert forked.answer.citations != ()


def test_a_number_that_was_given_is_not_given_again(
    store: Store, tmp_path: Path, empty: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old answers cite lines by number: a deleted line's must not come to mean another."""
    full_video.fill(store, FULL)
    full_video.fill(store, OTHER)
    delete_video_rows(store, OTHER)
    back_up(store, tmp_path / "b", Quiet())
    restored(empty, tmp_path / "b", monkeypatch)
    assert next_id(empty, "memories") == next_id(store, "memories")


def test_a_backup_is_one_moment_whatever_is_written_meanwhile(
    store: Store, tmp_path: Path, empty: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    full_video.fill(store, FULL)
    before = all_rows(store)

    class Meanwhile(Quiet):
        def start(self, label: str, total: int, done: int = 0) -> None:
            if label == "rows":
                full_video.fill(store, OTHER, "meanwhile")

    back_up(store, tmp_path / "b", Meanwhile())
    assert all_rows(store) != before
    restored(empty, tmp_path / "b", monkeypatch)
    assert all_rows(empty) == before


def test_full_library_is_left(backup: Path, empty: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    full_video.fill(empty, OTHER, "mine")
    before = (all_rows(empty), all_images(empty), name_of(empty))
    with pytest.raises(InputError, match=r"not empty \(rows of \w+, videos, "):
        restored(empty, backup, monkeypatch)
    assert (all_rows(empty), all_images(empty), name_of(empty)) == before


@pytest.mark.parametrize("where", ["checking, MB", "rows", "images, MB"])
def test_ctrl_c_leaves_nothing_half_done(
    backup: Path, empty: Store, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    class Stops(Quiet):
        def start(self, label: str, total: int, done: int = 0) -> None:
            super().start(label, total)

        def step(self, steps: int = 1) -> None:
            if self.told[-1][0] == where:
                raise KeyboardInterrupt

    # Every byte counts, so that the bar moves within the smallest library.
    monkeypatch.setattr("store.progress._megabytes", lambda count: count)
    monkeypatch.setenv("HOMER_DATABASE_URL", empty.url)
    with pytest.raises(KeyboardInterrupt):
        restore_library(empty.home, backup, Stops())
    assert not any(all_rows(empty).values())
    assert list(empty.blobs.walk()) == []
    restored(empty, backup, monkeypatch)


def test_ctrl_c_leaves_no_file(library: tuple[Store, str], tmp_path: Path) -> None:
    class Stops(Quiet):
        def step(self, steps: int = 1) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        back_up(library[0], tmp_path / "b", Stops())
    assert list(tmp_path.iterdir()) == []


def test_what_killed_backup_left_goes_with_next(library: tuple[Store, str], tmp_path: Path) -> None:
    (tmp_path / ".b.99999999.part").write_bytes(b"half")
    (tmp_path / f".b.{os.getppid()}.part").write_bytes(b"of a living process")
    back_up(library[0], tmp_path / "b", Quiet())
    assert sorted(p.name for p in tmp_path.iterdir()) == [f".b.{os.getppid()}.part", "b"]


def test_images_of_a_killed_restoring_go_with_the_next(
    library: tuple[Store, str], backup: Path, empty: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with empty.begin() as session:
        set_library_id(session, name_of(library[0]))
    left = empty.blobs.put(b"of a killed restoring")
    restored(empty, backup, monkeypatch)
    assert left not in all_images(empty)
    assert all_images(empty) == all_images(library[0])


def altered(path: Path, out: Path, **changes: object) -> Path:
    with ZipFile(path) as old, ZipFile(out, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "manifest.json":
                data = json.dumps(json.loads(data) | changes).encode()
            new.writestr(name, data)
    return out


def test_a_backup_of_another_homer_says_so(
    backup: Path, empty: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = altered(backup, tmp_path / "made elsewhere", revision="9999_00000000")
    with pytest.raises(InputError, match=r"at revision 9999_0+, this Homer at .*that made it"):
        restored(empty, other, monkeypatch)
    other = altered(backup, tmp_path / "newest", homer_backup=2)
    with pytest.raises(InputError, match="no back-up that this Homer knows"):
        restored(empty, other, monkeypatch)
    assert not any(all_rows(empty).values())


@pytest.mark.parametrize(
    "change",
    [
        {"table": "alembic_version"},
        {"table": "library"},
        {"columns": ["id", "no_such_column"]},
        {"columns": ['id") FROM PROGRAM $$true$$ --']},
    ],
    ids=str,
)
def test_a_made_up_backup_writes_to_no_other_table(
    backup: Path,
    empty: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: dict[str, object],
) -> None:
    with ZipFile(backup) as archive:
        tables = json.loads(archive.read("manifest.json"))["tables"]
    odd = altered(backup, tmp_path / "odd", tables=[tables[0] | change, *tables[1:]])
    with pytest.raises(InputError, match="altered: no table is like its"):
        restored(empty, odd, monkeypatch)
    assert not any(all_rows(empty).values())
    assert list(empty.blobs.walk()) == []


def test_rows_that_fit_no_table_are_refused(
    backup: Path, empty: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ZipFile(backup) as archive:
        tables = json.loads(archive.read("manifest.json"))["tables"]
    swapped = [
        one | {"columns": one["columns"][::-1]} if one["table"] == "messages" else one
        for one in tables
    ]
    odd = altered(backup, tmp_path / "odd", tables=swapped)
    with pytest.raises(InputError, match="rows do not fit"):
        restored(empty, odd, monkeypatch)
    assert not any(all_rows(empty).values())


def test_beside_its_original_a_library_has_a_name_and_images_of_its_own(
    store: Store, tmp_path: Path, make_database: Callable[[], str]
) -> None:
    full_video.fill(store, FULL)
    back_up(store, tmp_path / "b", Quiet())
    with open_store(store.home, make_database()) as twin:
        restore_backup(named(twin), tmp_path / "b", Quiet())
        assert name_of(twin) != name_of(store)
        kept = all_images(twin)
        delete_video_rows(store, FULL)
        assert (all_images(store), all_images(twin)) == ({}, kept)


def test_lost_image_is_named_and_rest_is_kept(store: Store, tmp_path: Path, empty: Store) -> None:
    full_video.fill(store, FULL)
    gone = sorted(all_images(store))[0]
    store.blobs.delete(gone)
    assert back_up(store, tmp_path / "b", Quiet()).missing == (gone,)
    restore_backup(empty, tmp_path / "b", Quiet())
    assert all_images(empty) == all_images(store)
    assert all_dumps(empty) == all_dumps(store)


def test_an_image_stays_until_the_backup_has_it(store: Store, tmp_path: Path) -> None:
    """Somebody deletes the video meanwhile: that waits, and the back-up is whole."""
    full_video.fill(store, FULL)
    deleting = Thread(target=delete_video_rows, args=(store, FULL))

    class Meanwhile(Quiet):
        def start(self, label: str, total: int, done: int = 0) -> None:
            if label == "rows":
                deleting.start()
                deleting.join(0.5)

    output = back_up(store, tmp_path / "b", Meanwhile())
    deleting.join(30)
    assert (output.blobs, output.missing, output.rows("videos")) == (2, (), 1)
    assert all_images(store) == {}


@pytest.mark.full
def test_memory_does_not_grow_with_the_library(store: Store, tmp_path: Path, empty: Store) -> None:
    full_video.fill(store, FULL)
    with store.begin() as session:
        for _ in range(24):
            data = os.urandom(1_000_000)
            session.add(BlobRow(video_id=FULL, sha256=store.blobs.put(data), size=len(data)))
        session.execute(text("UPDATE memories SET text = repeat(md5(id::text), 30000)"))
    tracemalloc.start()
    back_up(store, tmp_path / "b", Quiet())
    restore_backup(empty, tmp_path / "b", Quiet())
    _now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (tmp_path / "b").stat().st_size > 24_000_000
    assert peak < 12_000_000


def test_the_commands_move_a_library_from_an_embedded_to_an_external_database(
    home: Home, tmp_path: Path, postgres: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(home) as store:
        full_video.fill(store, FULL)
        dumps, images = all_dumps(store), all_images(store)
    out = tmp_path / "library.homer"
    made = run("backup", out)
    assert (made.exit_code, made.stderr) == (0, made.stderr)
    assert re.fullmatch(
        r"complete: 1 video, 3 clips, 0 answers, 0 skills, 2 images; \d+\.\d MB\n", made.stdout
    )
    again = run("backup", out)
    assert (again.exit_code, "is there already" in again.stderr) == (2, True)
    assert run("restore", out).exit_code == 2, "into itself"
    # A database of one's own, without a single table.
    bare = postgres.ensure_database("bare")
    monkeypatch.setenv("HOMER_DATABASE_URL", bare)
    assert run("restore", out, "--check").stdout.startswith("complete: 1 video,")
    output = json.loads(run("restore", out, "--json").stdout)
    assert (output["blobs"], output["revision"]) == (2, HEAD)
    with open_store(home, bare) as store:
        assert (all_dumps(store), all_images(store)) == (dumps, images)
    assert run("dump", FULL).stdout.splitlines() == dumps[FULL]


def test_a_database_that_goes_leaves_nothing(backup: Path, empty: Store, tmp_path: Path) -> None:
    class Cut(Quiet):
        def step(self, steps: int = 1) -> None:
            with create_engine(parse_url(empty.url)).connect() as other:
                other.execute(
                    text(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
                    )
                )

    with pytest.raises(DatabaseError, match=r"cannot be reached|gave up"):
        restore_backup(empty, backup, Cut())
    assert not any(all_rows(empty).values())
    assert list(empty.blobs.walk()) == []
    with pytest.raises(DatabaseError, match=r"cannot be reached|gave up"):
        back_up(empty, tmp_path / "b", Cut())
    assert list(tmp_path.glob("*b*")) == []
