"""A video goes from library to library in a file, with everything, or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from sqlalchemy import select

from domain.errors import InputError
from domain.skills import JudgedTrajectory
from domain.trajectory import ForkEdit
from domain.watching import Imported
from flows.removal import delete_video_rows
from graphs.replay import replay
from graphs.runner import Runner
from library.memory import dump_lines
from library.removal import export_video
from library.videos import all_videos
from store.database import Store, open_store
from store.embedded import EmbeddedPostgres
from store.export import import_exported_video
from store.home import Home
from store.queries.backup import exported_tables
from store.queries.learning import put_judgement
from store.queries.trajectories import list_trajectories
from store.tables.schema import Base, ModelCallRow
from tests.support import full_video
from tests.support.asking import PARTY, WordToolbox
from tests.support.commands import run
from tests.support.full_suite import sample
from tests.support.library import FULL, OTHER, Quiet, all_images, all_rows, fill_library

LIBRARY_WIDE = {
    "alerts",
    "alert_clips",
    "alert_hits",
    "audit",
    "enforced_rights",
    "grants",
    "group_members",
    "judgements",
    "library",
    "observations",
    "saved_searches",
    "shared_links",
    "skills",
    "taken",
}

ALONE, TWO = "1" * 16, "2" * 16
"""Trajectories over one video alone, and over two."""


@pytest.fixture(scope="module")
def library(
    tmp_path_factory: pytest.TempPathFactory, make_database: Callable[[], str]
) -> Iterator[tuple[Store, str]]:
    """A library of three videos, which no test changes, and an answer about the party."""
    with open_store(Home(tmp_path_factory.mktemp("library")), make_database()) as store:
        answer = fill_library(store)
        full_video.ask(store, ALONE, "asked of one alone", FULL)
        full_video.ask(store, TWO, "asked of two", FULL, OTHER)
        with store.begin() as session:
            judged = JudgedTrajectory(trajectory=ALONE, question_type="why", right=True)
            put_judgement(session, judged)
            call = session.scalars(select(ModelCallRow).where(ModelCallRow.trajectory_id == TWO))
            call.one().video_id = FULL
        yield store, answer


@pytest.fixture(scope="module")
def exported(library: tuple[Store, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported")
    for video in (FULL, OTHER, PARTY):
        export_video(library[0], video, folder / f"{video}.zip")
    return folder


def dumped(store: Store, video: str) -> list[str]:
    return list(dump_lines(store, video))


def trajectories(store: Store) -> list[str]:
    with store.begin() as session:
        return [one.id for one in list_trajectories(session)]


def test_every_table_is_of_a_video_or_of_the_library() -> None:
    rest = set(Base.metadata.tables) - set(exported_tables())
    assert {name for name in rest if not name.startswith("eval_")} == LIBRARY_WIDE


@pytest.mark.parametrize("video", [FULL, PARTY])
def test_a_video_dumps_the_same_in_an_empty_library(
    library: tuple[Store, str], exported: Path, empty: Store, video: str
) -> None:
    import_exported_video(empty, exported / f"{video}.zip", Quiet())
    assert dumped(empty, video) == dumped(library[0], video)
    assert [one.id for one in all_videos(empty).items] == [video]
    assert all_images(empty).items() <= all_images(library[0]).items()
    export_video(empty, video, empty.home.root / "again.zip")
    if video == PARTY:
        again, first = empty.home.root / "again.zip", exported / f"{PARTY}.zip"
        assert rows_of(again) == renumbered(rows_of(first), "questions")


def rows_of(path: Path) -> list[Any]:
    with ZipFile(path) as archive:
        return [json.loads(line) for line in archive.read("rows.jsonl").splitlines()]


def renumbered(rows: list[Any], table: str) -> list[Any]:
    """With the numbers that an empty library gives to questions."""
    for row in rows[1:]:
        if row[0] == table:
            row[1]["id"] = 1
        if row[0] == "trajectories":
            row[1]["question_id"] = 1
    return rows


def test_an_answer_comes_along(library: tuple[Store, str], exported: Path, empty: Store) -> None:
    output = import_exported_video(empty, exported / f"{PARTY}.zip", Quiet())
    assert output == Imported(video=PARTY, title=output.title, clips=6, fresh=6, answers=1)
    assert trajectories(empty) == [library[1]]
    assert replay(empty, library[1]).whole
    with Runner(empty, WordToolbox()) as runner:
        forked = runner.fork(library[1], 1, ForkEdit())
    assert forked.answer is not None
    cited = {one.ref for one in forked.answer.citations}
    with Runner(library[0], WordToolbox()) as runner:
        same = runner.fork(library[1], 1, ForkEdit()).answer
    assert same is not None
    assert cited == {one.ref for one in same.citations} != set()


def test_beside_other_videos_rows_are_numbered_anew_and_answers_stay_behind(
    library: tuple[Store, str], exported: Path, empty: Store
) -> None:
    full_video.fill(empty, OTHER, "mine")
    mine = dumped(empty, OTHER)
    output = import_exported_video(empty, exported / f"{FULL}.zip", Quiet())
    assert (output.clips, output.answers, output.left) == (3, 0, 1)
    assert dumped(empty, FULL) == dumped(library[0], FULL)
    assert (dumped(empty, OTHER), trajectories(empty)) == (mine, [])
    assert not any("asked of one alone" in row[0] for row in messages(empty))


def messages(store: Store) -> list[tuple[Any, ...]]:
    return all_rows(store)["messages"]


def test_nothing_about_other_videos_is_exported(exported: Path) -> None:
    """No answer over several videos, none of its sentences and calls, and no id of another one."""
    with ZipFile(exported / f"{FULL}.zip") as archive:
        text = archive.read("rows.jsonl").decode()
    assert "asked of one alone" in text
    assert [odd for odd in (TWO, OTHER, "asked of two", "told by hand") if odd in text] == []
    assert '["judgements"' not in text


def test_answer_of_other_videos_stays_behind(exported: Path, empty: Store, tmp_path: Path) -> None:
    other = {"trajectory_id": ALONE, "video_id": OTHER, "last_clip": 2}
    odd = altered(
        exported / f"{FULL}.zip",
        tmp_path / "odd.zip",
        lambda rows: rows.append(["trajectory_videos", other]),
    )
    output = import_exported_video(empty, odd, Quiet())
    assert (output.answers, output.left, trajectories(empty)) == (0, 1, [])
    assert not any("asked of one alone" in row[0] for row in messages(empty))


def test_what_is_watched_later_gets_numbers_of_its_own(
    library: tuple[Store, str], exported: Path, empty: Store
) -> None:
    import_exported_video(empty, exported / f"{OTHER}.zip", Quiet())
    full_video.fill(empty, FULL)
    assert dumped(empty, FULL) == dumped(library[0], FULL)
    assert dumped(empty, OTHER) == dumped(library[0], OTHER)


def test_a_video_that_is_here_is_left_as_it_is(exported: Path, empty: Store) -> None:
    full_video.fill(empty, FULL, "mine")
    before = (all_rows(empty), all_images(empty))
    with pytest.raises(InputError, match="in this library already: delete it"):
        import_exported_video(empty, exported / f"{FULL}.zip", Quiet())
    assert (all_rows(empty), all_images(empty)) == before
    delete_video_rows(empty, FULL)
    import_exported_video(empty, exported / f"{FULL}.zip", Quiet())


def altered(path: Path, out: Path, change: Callable[[list[Any]], object]) -> Path:
    rows = rows_of(path)
    change(rows)
    with ZipFile(path) as old, ZipFile(out, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "rows.jsonl":
                data = "\n".join(json.dumps(row) for row in rows).encode()
            new.writestr(name, data)
    return out


def first(rows: list[Any], table: str) -> dict[str, Any]:
    found: dict[str, Any] = next(row[1] for row in rows[1:] if row[0] == table)
    return found


CHANGES: dict[str, tuple[Callable[[list[Any]], object], str]] = {
    "another video's row": (lambda rows: first(rows, "clips").update(video_id=OTHER), "another"),
    "another row's row": (lambda rows: first(rows, "sightings").update(identity_id=9999), "refers"),
    "no such table": (lambda rows: rows.append(["pg_authid", {}]), "no table"),
    "the library": (lambda rows: rows.append(["library", {"id": "x"}]), "no table"),
    "no such column": (lambda rows: first(rows, "clips").update({'x") --': 1}), "no table is like"),
    "no number": (lambda rows: first(rows, "memories").pop("id"), "torn or altered"),
    "no video": (lambda rows: rows.__setitem__(slice(1, None), []), "the video itself"),
    "text for a number": (lambda rows: first(rows, "clips").update(start_ms="x"), "do not fit"),
    "a row twice": (lambda rows: rows.append(rows[-1]), "do not fit"),
    "not a row": (lambda rows: rows.append(7), "torn or altered"),
    "not a head": (lambda rows: rows.__setitem__(0, []), "no export"),
    "other tables": (lambda rows: rows[0].update(revision="9999"), "another version of Homer"),
    "a column less": (lambda rows: first(rows, "clips").pop("budget"), "no table is like"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_no_altered_export_counts(exported: Path, empty: Store, tmp_path: Path, name: str) -> None:
    change, output = CHANGES[name]
    full_video.fill(empty, OTHER, "mine")
    before = (all_rows(empty), all_images(empty))
    odd = altered(exported / f"{FULL}.zip", tmp_path / "odd.zip", change)
    with pytest.raises(InputError, match=output):
        import_exported_video(empty, odd, Quiet())
    assert (all_rows(empty), all_images(empty)) == before


@pytest.mark.parametrize("share", sample([0.3, 0.99], [0, 0.3, 0.7, 0.99]))
def test_no_torn_export_counts(exported: Path, empty: Store, tmp_path: Path, share: float) -> None:
    data = (exported / f"{FULL}.zip").read_bytes()
    torn = tmp_path / "torn.zip"
    torn.write_bytes(data[: int(share * len(data))])
    with pytest.raises(InputError, match="torn or altered"):
        import_exported_video(empty, torn, Quiet())
    assert all_videos(empty).items == ()


def test_ctrl_c_leaves_neither_rows_nor_images(exported: Path, empty: Store) -> None:
    class Stops(Quiet):
        def step(self, steps: int = 1) -> None:
            if self.steps > 20:
                raise KeyboardInterrupt
            super().step(steps)

    with pytest.raises(KeyboardInterrupt):
        import_exported_video(empty, exported / f"{FULL}.zip", Stops())
    assert (all_videos(empty).items, all_images(empty)) == ((), {})


def test_the_commands_take_a_video_from_the_embedded_to_another_database_and_back(
    home: Home, tmp_path: Path, make_database: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(home) as store:
        full_video.fill(store, FULL)
        known = dumped(store, FULL)
    out = tmp_path / "full.zip"
    assert run("export", FULL, "--out", out).exit_code == 0
    with monkeypatch.context() as patch:
        patch.setenv("HOMER_DATABASE_URL", make_database())
        assert run("import", out).stdout == f"full: imported (3 clips, 0 answers, id {FULL})\n"
        assert run("dump", FULL).stdout.splitlines() == known
        assert run("export", FULL, "--out", tmp_path / "back.zip").exit_code == 0
    assert run("delete", FULL, "--yes").exit_code == 0
    output = json.loads(run("import", tmp_path / "back.zip", "--json").stdout)
    counts = {"clips": 3, "fresh": 3, "failed": 0, "answers": 0}
    assert output == [{"video": FULL, "title": "full", **counts}]
    assert run("dump", FULL).stdout.splitlines() == known
    again = run("import", out)
    assert (again.exit_code, "in this library already" in again.stderr) == (2, True)
    assert run("import", tmp_path / "none.zip").exit_code == 2
    EmbeddedPostgres(home).stop()
