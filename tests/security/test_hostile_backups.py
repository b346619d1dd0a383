"""Back-ups that somebody altered, whole by their own checksums: refused, and nothing is left."""

from __future__ import annotations

import io
import os
import tarfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from typer.testing import CliRunner

from cli.main import app
from domain.errors import InputError
from domain.settings import ImportLimits
from domain.trajectory import ForkEdit
from graphs.runner import Runner
from library.rights import change_group, give_right, rights_on
from library.videos import all_videos
from store.archive import IMAGES_MEMBER
from store.backup import back_up, check_archive, restore_library
from store.database import Store
from store.queries.rights import list_members, rights_enforced, sees_everything
from tests.support.altered_exports import (
    Members,
    backup_with,
    members_of,
    set_column,
    table_of,
    written,
)
from tests.support.asking import WordToolbox
from tests.support.full_suite import ends
from tests.support.library import Quiet, all_images, all_rows
from ui import media

Manifest = dict[str, Any]


@pytest.fixture
def refused(victim: Store, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Refuses a back-up in one line, with nothing left of it: no row, no blob, no file."""

    def check(path: Path, output: str, limits: ImportLimits | None = None) -> None:
        monkeypatch.setenv("HOMER_DATABASE_URL", victim.url)
        beside = sorted(path.parent.iterdir())
        with pytest.raises(InputError, match=output) as error:
            restore_library(victim.home, path, Quiet(), limits or ImportLimits())
        assert "\n" not in str(error.value)
        assert [name for name, found in all_rows(victim).items() if found] == []
        assert all_images(victim) == {}
        assert sorted(path.parent.iterdir()) == beside

    return check


def restored(store: Store, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOMER_DATABASE_URL", store.url)
    restore_library(store.home, path, Quiet(), rights=True)


def test_a_path_that_a_backup_brings_serves_no_other_file(
    backup: Path, empty: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("a key")

    def change(manifest: Manifest, members: Members) -> None:
        set_column(manifest, members, "videos", "path", str(secret))

    restored(empty, backup_with(backup, tmp_path / "odd", change), monkeypatch)
    monkeypatch.setattr(media, "shared_store", lambda: empty)
    for one in all_videos(empty).items:
        assert one.path == str(secret)
        assert media._original_by_id(empty, one.id) is None


def other_table(manifest: Manifest, members: Members) -> None:
    table_of(manifest, "videos")["table"] = "pg_authid"


def other_column(manifest: Manifest, members: Members) -> None:
    table_of(manifest, "videos")["columns"][0] = "id) FROM PROGRAM 'touch mark' --"


def huge_counter(manifest: Manifest, members: Members) -> None:
    table_of(manifest, "memories")["counters"] = {"id": 2**63 - 1}


def counter_of_another(manifest: Manifest, members: Members) -> None:
    table_of(manifest, "memories")["counters"] = {"id": -1}


def table_twice(manifest: Manifest, members: Members) -> None:
    manifest["tables"].append(table_of(manifest, "videos"))


def more_rows(manifest: Manifest, members: Members) -> None:
    table_of(manifest, "videos")["rows"] += 1


def ends_early(manifest: Manifest, members: Members) -> None:
    r"""``\.`` ends what COPY reads; the rest would be what the server is told next, or is lost."""
    name = table_of(manifest, "clips")["part"]["name"]
    first, _end, rest = members[name].partition(b"\n")
    members[name] = first + b"\n\\.\nDROP TABLE videos;\n" + rest


def other_name(manifest: Manifest, members: Members) -> None:
    part = table_of(manifest, "videos")["part"]
    members["../../videos"] = members.pop(part["name"])
    part["name"] = "../../videos"
    members["../../extra"] = b""


def other_library(manifest: Manifest, members: Members) -> None:
    manifest["library"] = "../../../tmp"


ODD: dict[str, tuple[Callable[[Manifest, Members], object], str]] = {
    "a table of the system": (other_table, "no table is like its pg_authid"),
    "a column that is a command": (other_column, "no table is like its videos"),
    "a counter at the end of all": (huge_counter, "no back-up that this Homer knows"),
    "a counter below none": (counter_of_another, "no back-up that this Homer knows"),
    "a table twice": (table_twice, "is no back-up|do not fit"),
    "fewer rows than are said": (more_rows, "videos has other rows than it says"),
    "rows that end early": (ends_early, "do not fit|other rows than it says"),
    "a member that is not named": (other_name, "is no back-up"),
    "a library elsewhere": (other_library, "no back-up that this Homer knows"),
}


@pytest.mark.parametrize("name", ODD)
def test_an_altered_backup_is_refused(
    backup: Path, tmp_path: Path, refused: Callable[..., None], name: str
) -> None:
    change, output = ODD[name]
    refused(backup_with(backup, tmp_path / "odd", change), output)
    assert not (tmp_path / "mark").exists()
    assert not Path("mark").exists()


def member(name: str, kind: bytes = tarfile.REGTYPE, data: bytes = b"", link: str = "") -> bytes:
    """A tar of one member, with its own headers for long names."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, len(data)
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        tar.addfile(info, io.BytesIO(data))
    return made.getvalue()


def header(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    """The head of a member that says to have ``size`` bytes, and nothing of it."""
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    return info.tobuf(tarfile.GNU_FORMAT)


SHA = "0" * 64
TARS = {
    "a path": member("../../../evil", data=b"x"),
    "an absolute path": member("/evil", data=b"x"),
    "a long path": member("../" * 100 + "evil", data=b"x"),
    "a symlink": member(SHA, tarfile.SYMTYPE, link="/etc/passwd"),
    "a link": member(SHA, tarfile.LNKTYPE, link="/etc/passwd"),
    "a device": member(SHA, tarfile.CHRTYPE),
    "a folder": member(SHA, tarfile.DIRTYPE),
    "a fifo": member(SHA, tarfile.FIFOTYPE),
    "another digest": member(SHA, data=b"x"),
    "no tar": b"x" * 2000,
    "no end": header(SHA, 1000),
    "below nothing": header(SHA, -512),
    "an extended header of terabytes": header("x", 1 << 40, tarfile.XHDTYPE),
    "a long name of terabytes": header("x", 1 << 40, tarfile.GNUTYPE_LONGNAME),
    "nothing": bytes(1024),
}


@pytest.mark.parametrize("name", ends([*TARS]))
def test_images_that_are_no_images_are_refused(
    backup: Path, tmp_path: Path, refused: Callable[..., None], name: str
) -> None:
    def change(manifest: Manifest, members: Members) -> None:
        members[IMAGES_MEMBER] = TARS[name]

    output = "not in it" if name == "nothing" else "is no back-up"
    refused(backup_with(backup, tmp_path / "odd", change), output)


def test_an_image_that_no_row_names_is_refused(
    backup: Path, tmp_path: Path, refused: Callable[..., None]
) -> None:
    import hashlib

    own = member(hashlib.sha256(b"mine").hexdigest(), data=b"mine")

    def change(manifest: Manifest, members: Members) -> None:
        members[IMAGES_MEMBER] = own

    refused(backup_with(backup, tmp_path / "odd", change), "an image that no row names")


def test_all_sizes_have_limits(backup: Path, tmp_path: Path, refused: Callable[..., None]) -> None:
    def long(manifest: Manifest, members: Members) -> None:
        set_column(manifest, members, "videos", "title", os.urandom(2_000_000).hex())

    odd = backup_with(backup, tmp_path / "long", long)
    refused(odd, "imports.line_mb is 2", ImportLimits(line_mb=2))

    def large(manifest: Manifest, members: Members) -> None:
        members[IMAGES_MEMBER] = header(SHA, 65 << 20)

    odd = backup_with(backup, tmp_path / "large", large)
    refused(odd, "an image has 65 MB, and the limit imports.blob_mb is 64")


def test_small_ones_stay_small(backup: Path, tmp_path: Path, refused: Callable[..., None]) -> None:
    def change(manifest: Manifest, members: Members) -> None:
        members[IMAGES_MEMBER] = bytes(100_000_000)

    odd = backup_with(backup, tmp_path / "odd", change)
    assert odd.stat().st_size < 1_000_000
    tracemalloc.start()
    refused(odd, "imports.ratio is 200")
    with pytest.raises(InputError, match=r"imports\.ratio"):
        check_archive(odd, Quiet())
    _now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20_000_000


def test_a_manifest_has_a_limit(backup: Path, tmp_path: Path, refused: Callable[..., None]) -> None:
    members = members_of(backup)
    odd = written(tmp_path / "odd", members | {"manifest.json": b" " * (17 << 20)})
    refused(odd, "is no back-up")
    twice = written(tmp_path / "twice", members)
    with ZipFile(twice, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("manifest.json", members["manifest.json"])
    refused(twice, "is no back-up")


def test_the_same_backup_written_anew_is_restored(
    library: tuple[Store, str],
    backup: Path,
    empty: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is refused above is refused for what was altered."""
    restored(empty, backup_with(backup, tmp_path / "same", lambda m, parts: None), monkeypatch)
    assert all_rows(empty) == all_rows(library[0])
    assert all_images(empty) == all_images(library[0]) != {}
    with Runner(empty, WordToolbox()) as runner:
        assert runner.fork(library[1], 1, ForkEdit()).answer is not None


@pytest.mark.parametrize("rights", [False, True])
def test_rights_of_a_backup_hold_only_where_that_is_asked_for(
    store: Store, empty: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rights: bool
) -> None:
    """Whoever made it may have given themselves everything."""
    give_right(store, "eve@example.org", everything=True)
    change_group(store, "editors", "eve@example.org")
    rights_on(store)
    back_up(store, tmp_path / "b", Quiet())
    monkeypatch.setenv("HOMER_HOME", str(empty.home.root))
    monkeypatch.setenv("HOMER_DATABASE_URL", empty.url)
    done = CliRunner().invoke(app, ["restore", str(tmp_path / "b"), *["--rights"] * rights])
    assert "2 rights and members of groups are in it, restored with --rights only" in done.stderr
    with empty.begin() as session:
        assert sees_everything(session, "eve@example.org") is rights
        assert len(list_members(session)) == rights
        assert rights_enforced(session), "else everybody would see everything"
