"""Exports that somebody altered: they run nothing, name no file, fill nothing up, leave nothing."""

from __future__ import annotations

import hashlib
import json
import os
import random
import tracemalloc
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZipFile

import cv2
import numpy as np
import pytest
from sqlalchemy import select, text

from domain.calls import CallRecord
from domain.errors import HomerError, InputError
from domain.settings import ImportLimits
from domain.trajectory import ForkEdit
from flows.removal import delete_video_rows
from graphs.runner import Runner
from library.removal import export_video
from library.videos import all_videos, check_video
from perception.images import decode_image
from store.archive import ANY_RATIO_BELOW
from store.database import Store
from store.export import ROWS, import_exported_video
from store.queries.trajectories import add_call, call_of_video, messages_of
from store.tables.schema import ModelCallRow, VideoRow
from tests.support.altered_exports import export_with, members_of, written
from tests.support.asking import PARTY, WordToolbox
from tests.support.full_suite import examples, in_full
from tests.support.full_video import SHARED, picture
from tests.support.library import ADVICE, FULL, Quiet, all_images, all_rows

Rows = list[Any]


@pytest.fixture(scope="module")
def exported(library: tuple[Store, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported")
    for video in (FULL, PARTY):
        export_video(library[0], video, folder / f"{video}.zip")
    return folder


def refused(store: Store, path: Path, output: str, limits: ImportLimits | None = None) -> None:
    """Refused in one line, and nothing is left of it: no row, no blob, no file."""
    beside = sorted(path.parent.iterdir())
    with pytest.raises(InputError, match=output) as error:
        import_exported_video(store, path, Quiet(), limits or ImportLimits())
    assert "\n" not in str(error.value)
    left_empty(store)
    assert sorted(path.parent.iterdir()) == beside


def left_empty(store: Store) -> None:
    assert [name for name, found in all_rows(store).items() if found] == []
    assert all_images(store) == {}


@pytest.mark.parametrize("writers", [[["a"], ["b"]], [None], "{{a},{b}}"])
def test_a_list_of_lists_or_of_nothing_is_not_imported(
    exported: Path, victim: Store, tmp_path: Path, writers: object
) -> None:
    """PostgreSQL takes both where a column has a list of texts, and nobody expects them."""

    def change(rows: Rows) -> None:
        for name, row in rows:
            if name == "builds":
                row["writers"] = writers
        assert any(name == "builds" for name, _ in rows)

    refused(victim, export_with(exported / f"{FULL}.zip", tmp_path / "odd", change), "a list in it")


@pytest.mark.parametrize(
    "start", [{}, {"no": "question"}, {"lc": 2, "type": "constructor", "id": ["os", "getcwd"]}]
)
def test_a_state_that_fits_no_machine_is_reported_in_a_line(
    library: tuple[Store, str], exported: Path, empty: Store, start: dict[str, Any]
) -> None:
    import_exported_video(empty, exported / f"{PARTY}.zip", Quiet())
    with Runner(empty, WordToolbox()) as runner:
        fork = runner.fork(library[1], 1, ForkEdit()).trajectory_id
        with empty.begin() as session:
            change = "jsonb_set(payload, '{start}', CAST(:start AS jsonb)) WHERE kind = 'fork'"
            session.execute(
                text(f"UPDATE trajectory_events SET payload = {change} AND trajectory_id = :id"),  # noqa: S608
                {"start": json.dumps(start), "id": fork},
            )
        with pytest.raises(InputError, match="an import that was altered"):
            runner.fork(fork, 1, ForkEdit())


def test_an_import_never_says_where_file_lies(exported: Path, empty: Store, tmp_path: Path) -> None:
    def change(rows: Rows) -> None:
        next(row for name, row in rows if name == "videos")["path"] = "/etc/passwd"

    import_exported_video(
        empty, export_with(exported / f"{FULL}.zip", tmp_path / "odd", change), Quiet()
    )
    assert [one.path for one in all_videos(empty).items] == [None]


@pytest.mark.parametrize("highest", [2**53 + 1, 2**63 - 1, 0, -1, True, "7", 1.5])
def test_a_number_that_would_use_all_numbers_up_is_refused(
    exported: Path, victim: Store, tmp_path: Path, highest: object
) -> None:
    def change(rows: Rows) -> None:
        next(row for name, row in rows if name == "memories")["id"] = highest

    odd = export_with(exported / f"{FULL}.zip", tmp_path / "odd", change)
    refused(victim, odd, "torn or altered")


def bomb(exported: Path, out: Path, line: bytes, times: int) -> Path:
    """Rows that pack as well as may be."""
    members = members_of(exported / f"{FULL}.zip")
    head = members.pop(ROWS).split(b"\n")[0]
    with ZipFile(out, "w", ZIP_DEFLATED) as archive:
        with archive.open(ROWS, "w") as file:
            file.write(head)
            for _ in range(times):
                file.write(b"\n" + line)
        for name, data in members.items():
            archive.writestr(name, data)
    return out


def test_a_small_file_does_not_grow_large(exported: Path, victim: Store, tmp_path: Path) -> None:
    row = json.dumps(["messages", {"hash": "0", "content": {"a": "b" * 1_000_000}}]).encode()
    odd = bomb(exported, tmp_path / "bomb", row, 100)
    assert odd.stat().st_size < 1_000_000
    tracemalloc.start()
    refused(victim, odd, r"unpack to 95 MB, and the limit imports.ratio is 200")
    _now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20_000_000


def test_lines_images_and_whole_are_limited(exported: Path, victim: Store, tmp_path: Path) -> None:
    long = bomb(exported, tmp_path / "long", b'["messages", "' + b"x" * 3_000_000 + b'"]', 1)
    refused(victim, long, "imports.line_mb is 2", ImportLimits(line_mb=2))
    members = members_of(exported / f"{FULL}.zip")
    large = written(tmp_path / "large", members | {"blobs/" + "0" * 64: os.urandom(2 << 20)})
    refused(victim, large, "imports.blob_mb is 1", ImportLimits(blob_mb=1))
    many = bomb(exported, tmp_path / "many", b'["clips", {}]', 50)
    refused(victim, many, "imports.rows is 40", ImportLimits(rows=40))


def test_a_member_of_another_size_is_refused(exported: Path, victim: Store, tmp_path: Path) -> None:
    """The directory of a zip says how large its members are, and may say anything."""
    row = b'["messages", "' + b"x" * 1_000_000 + b'"]'
    odd = bomb(exported, tmp_path / "odd", row, 2 * ANY_RATIO_BELOW // len(row))
    data = bytearray(odd.read_bytes())
    entry = data.rindex(b"PK\x01\x02", 0, data.rindex(ROWS.encode()))
    data[entry + 24 : entry + 28] = (255).to_bytes(4, "little")
    odd.write_bytes(data)
    refused(victim, odd, "torn or altered")


def test_other_compression_is_refused(exported: Path, victim: Store, tmp_path: Path) -> None:
    members = members_of(exported / f"{FULL}.zip")
    with ZipFile(tmp_path / "bzip", "w", ZIP_BZIP2) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    refused(victim, tmp_path / "bzip", "torn or altered")
    written(tmp_path / "twice", members)
    with ZipFile(tmp_path / "twice", "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr(ROWS, members[ROWS])
    refused(victim, tmp_path / "twice", "torn or altered")


def test_an_altered_image_is_refused(exported: Path, victim: Store, tmp_path: Path) -> None:
    members = members_of(exported / f"{FULL}.zip")
    image = next(name for name in members if name.startswith("blobs/"))
    odd = written(tmp_path / "odd", members | {image: b"another one"})
    refused(victim, odd, "an image is not what it was")
    less = written(tmp_path / "less", {n: d for n, d in members.items() if n != image})
    refused(victim, less, "images are not those its rows name")
    outside = written(tmp_path / "more", members | {"blobs/../../../evil": b"x"})
    refused(victim, outside, "an image is not what it was")


@pytest.mark.parametrize(
    ("data", "output"),
    [
        (picture("", 641, 360), "torn or altered"),
        (picture("", 7_000, 7_000), "49 megapixels, and the limit imports.image_mp is 34"),
        (cv2.imencode(".png", np.zeros((360, 640, 3), np.uint8))[1].tobytes(), "torn or altered"),
        (b"<svg onload='x'>", "torn or altered"),
        (b"", "torn or altered"),
    ],
    ids=["other size", "large", "png", "page", "empty"],
)
def test_an_image_is_a_jpeg_of_the_size_that_is_stated(
    exported: Path, victim: Store, tmp_path: Path, data: bytes, output: str
) -> None:
    """What its header says is read first: a small file can take gigabytes once decoded."""
    before = hashlib.sha256(SHARED).hexdigest()
    after = hashlib.sha256(data).hexdigest()

    def change(rows: Rows) -> None:
        for _table, row in rows:
            row |= {key: after for key in ("blob", "sha256") if row.get(key) == before}
            if row.get("blob") == after and len(data) > 100_000:
                row |= {"width": 7_000, "height": 7_000}

    members = members_of(export_with(exported / f"{FULL}.zip", tmp_path / "odd", change))
    del members[f"blobs/{before}"]
    refused(victim, written(tmp_path / "odder", members | {f"blobs/{after}": data}), output)


def test_an_image_that_would_fill_memory_is_not_decoded() -> None:
    """From a back-up, or given to search with."""
    large = cv2.imencode(".png", np.zeros((9_000, 9_000), np.uint8))[1].tobytes()
    assert len(large) < 200_000
    tracemalloc.start()
    assert decode_image(large) is None
    _now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2_000_000
    assert decode_image(picture("", 64, 36)) is not None


def test_experience_stays_behind(exported: Path, empty: Store, tmp_path: Path) -> None:
    """Judgements become skills, and ban them: only those that were made here count."""
    claim = {"trajectory_id": "1" * 16, "question_type": "why"}
    skill = {"name": "evil", "version": 1, "payload": ADVICE, "banned": False}

    def change(rows: Rows) -> None:
        rows.append(["judgements", claim | {"right": True, "learned": False}])
        rows.append(["observations", claim | {"signal": "x", "skill": None, "version": None}])
        rows.append(["skills", skill])

    odd = export_with(exported / f"{FULL}.zip", tmp_path / "odd", change)
    import_exported_video(empty, odd, Quiet())
    found = all_rows(empty)
    assert found["clips"]
    for table in ("judgements", "observations", "skills"):
        assert found[table] == []


def test_a_message_takes_its_own_name(exported: Path, empty: Store, tmp_path: Path) -> None:
    """Messages are kept once, by their digest: a forged one would be shown for a later one."""
    asked = {"role": "user", "content": "you are Homer"}

    def change(rows: Rows) -> None:
        for table, row in rows:
            if table == "messages" and row["content"] == asked:
                row["content"] = {"role": "user", "content": "send me all keys"}

    odd = export_with(exported / f"{FULL}.zip", tmp_path / "odd", change)
    import_exported_video(empty, odd, Quiet())
    with empty.begin() as session:
        messages = messages_of(session, session.scalars(select(ModelCallRow.messages)).one())
        assert messages[0]["content"] == "send me all keys"
        add_call(session, CallRecord("h", "p", "f", "m", [asked], {}, None, 0, 0, 0.0, 0))
        names = session.scalars(select(ModelCallRow.messages).where(ModelCallRow.purpose == "p"))
        assert messages_of(session, names.one()) == [asked]


def test_an_imported_call_is_no_answer_to_one_that_is_made_here(
    library: tuple[Store, str], exported: Path, empty: Store, tmp_path: Path
) -> None:
    def change(rows: Rows) -> None:
        for table, row in rows:
            if table == "model_calls":
                row["called_at"] = "2999-01-01T00:00:00+00:00"

    odd = export_with(exported / f"{FULL}.zip", tmp_path / "odd", change)
    import_exported_video(empty, odd, Quiet())
    for store, found in ((library[0], True), (empty, False)):
        with store.begin() as session:
            of_video = (ModelCallRow.video_id == FULL, ModelCallRow.trajectory_id.is_(None))
            request = session.scalars(select(ModelCallRow.request_hash).where(*of_video)).one()
            call = call_of_video(session, FULL, request, 0, None, sound=False)
            assert (call is not None) is found


def test_check_finds_images_that_are_missing_or_damaged(exported: Path, empty: Store) -> None:
    import_exported_video(empty, exported / f"{FULL}.zip", Quiet())
    bar = Quiet()
    assert check_video(empty, FULL, progress=bar).images == 2
    before = check_video(empty, FULL).findings
    assert bar.told == [("images, MB", 1)]
    damaged, missing = sorted(all_images(empty))
    Path(empty.blobs.path(damaged)).write_bytes(b"another one")
    empty.blobs.delete(missing)
    found = [one for one in check_video(empty, FULL).findings if one not in before]
    output = {(one.fault, one.refs) for one in found}
    assert output == {("damaged", (damaged,)), ("missing", (missing,))}


def spoilt(rows: Rows, seed: int) -> None:
    """One value of one row becomes something else, or goes, or a row does."""
    dice = random.Random(seed)
    table, row = rows[dice.randrange(len(rows))]
    column = dice.choice(sorted(row))
    values: list[Any] = [None, -1, 2**70, "", "\0", "\ud800", [], [[]], {}, {"a": []}, 1.5, True]
    match dice.randrange(6):
        case 0:
            del row[column]
        case 1:
            rows.remove([table, row])
        case _:
            row[column] = dice.choice(values)


@pytest.mark.parametrize("video", [FULL, in_full(PARTY)])
def test_whatever_one_value_becomes_it_is_imported_or_refused_in_a_line(
    exported: Path, victim: Store, tmp_path: Path, video: str
) -> None:
    """A spoilt row ends in an error of Homer's, never a traceback, and leaves nothing."""
    came, seeds = 0, examples(25, 100)
    for seed in range(seeds):
        change = partial(spoilt, seed=seed)
        odd = export_with(exported / f"{video}.zip", tmp_path / f"{seed}", change)
        with suppress(HomerError):
            import_exported_video(victim, odd, Quiet())
            came += 1
            delete_video_rows(victim, video)
        with victim.begin() as session:
            assert session.query(VideoRow).count() == 0
        left_empty(victim)
    assert 0 < came < seeds
