"""Clips perceived by several workers: each once, by all of them, and the memory is the same.

On Dask: ``test_ingest_flow.py``, which has a server of Prefect's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from typer.testing import CliRunner

from cli.main import app
from domain.settings import Pool, WorkSettings
from flows.ingest_video import open_video
from flows.video_locks import is_watched, watched_videos
from flows.workspace import Workspace
from store.advisory_locks import claim_video
from store.database import open_store
from store.home import Home
from tests.support.full_suite import in_full
from tests.support.light_models import light_toolbox, read_by
from tests.support.worker_pools import (
    CLIPS,
    dump_of,
    eight_clips,
    record_deliveries,
    watch_with_workers,
)


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return eight_clips(tmp_path_factory.mktemp("eight"))


@pytest.fixture
def workspace(home: Home, make_database: Callable[[], str], tmp_path: Path) -> Iterator[Workspace]:
    box = light_toolbox(tmp_path / "notes", meeting=2)
    with open_store(home, make_database()) as store:
        yield Workspace(home, store, box.profile, box)


@pytest.fixture
def alone(home: Home, make_database: Callable[[], str], tmp_path: Path, video: Path) -> list[str]:
    box = light_toolbox(tmp_path / "alone")
    with open_store(home, make_database()) as store:
        outcome, _ = watch_with_workers(
            Workspace(home, store, box.profile, box), 1, "threads", video
        )
        assert len(read_by(box.weights)) == CLIPS
        return dump_of(store, outcome)


@pytest.mark.parametrize(("pool", "processes"), [("threads", 1), in_full(("processes", 2))])
def test_two_workers_share_eight_clips_and_make_the_same_memory(
    workspace: Workspace,
    alone: list[str],
    video: Path,
    pool: Pool,
    processes: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    delivered = record_deliveries(monkeypatch)
    outcome, failures = watch_with_workers(workspace, 2, pool, video)
    assert (failures, dump_of(workspace.store, outcome)) == ([], alone)
    assert sorted(clip for clip, _by in delivered) == list(range(CLIPS))
    assert len({by for _clip, by in delivered}) == 2
    read = read_by(workspace.toolbox.weights)
    assert (len(read), len(set(read))) == (CLIPS, processes)


def test_a_worker_that_is_killed_takes_nothing_along(
    workspace: Workspace, alone: list[str], video: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process ends while it perceives; others begin, and every clip is brought once."""
    monkeypatch.setattr("flows.executors.BACK_OFF_S", (0.0, 0.0))
    (workspace.toolbox.weights / "fatal").touch()
    delivered = record_deliveries(monkeypatch)
    outcome, failures = watch_with_workers(workspace, 2, "processes", video)
    assert failures == []
    assert sorted(clip for clip, _by in delivered) == list(range(CLIPS))
    assert dump_of(workspace.store, outcome) == alone
    assert not (workspace.toolbox.weights / "fatal").exists()


def test_a_model_that_fails_in_a_worker_is_asked_again(
    workspace: Workspace, alone: list[str], video: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flows.executors.BACK_OFF_S", (0.0,))
    (workspace.toolbox.weights / "odd").touch()
    outcome, failures = watch_with_workers(workspace, 2, "threads", video)
    assert (failures, dump_of(workspace.store, outcome)) == ([], alone)
    assert not (workspace.toolbox.weights / "odd").exists()


def test_one_machine_at_a_time_watches_a_video(
    workspace: Workspace, video: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another has another data directory, whose locks nobody here sees, and the same database."""
    monkeypatch.setattr("store.advisory_locks.GRACE_S", 0.0)
    elsewhere = Home(tmp_path / "elsewhere").make()
    with open_store(elsewhere, workspace.store.url) as other, open_video(workspace, video) as work:
        there = replace(workspace, home=elsewhere, store=other)
        outcome, _failures = watch_with_workers(there, 2, "processes", video)
        assert outcome.exit_code == 2
        assert "being watched by another homer" in str(outcome.error)
        assert is_watched(other, work.video.id)
        assert watched_videos(other) == {work.video.id}
    assert read_by(workspace.toolbox.weights) == []
    assert not is_watched(workspace.store, work.video.id)
    assert watched_videos(workspace.store) == frozenset()


def test_a_claim_ends_with_its_connection_and_not_with_anothers(workspace: Workspace) -> None:
    with claim_video(workspace.store, "a") as first, claim_video(workspace.store, "b") as other:
        assert (first, other) == (True, True)
        with claim_video(workspace.store, "a", 0.0) as second:
            assert not second
        with claim_video(workspace.store, "a", 0.0) as again:
            assert not again
    with claim_video(workspace.store, "a", 0.0) as later:
        assert later


def test_a_command_line_that_names_workers_has_them(
    home: Home, video: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The flags are the settings of the run, and of no other."""
    seen: list[WorkSettings] = []

    def stop(workspace: Workspace, *_args: Any, **_more: Any) -> Any:
        seen.append(workspace.settings.work)
        return iter(())

    @contextmanager
    def opened(*_: object) -> Iterator[Workspace]:
        box = light_toolbox(home.root / "notes")
        yield Workspace(home, cast("Any", None), box.profile, box)

    monkeypatch.setattr("flows.workspace.open_workspace", opened)
    monkeypatch.setattr("flows.watching.watch_files", stop)
    monkeypatch.setattr("store.vector_index.build_index", lambda *_: 0)
    for given in ([], ["--workers=3"], ["--workers=2", "--pool=dask"], ["--pool=processes"]):
        assert CliRunner().invoke(app, ["ingest", str(video), *given]).exit_code == 0
    assert [(one.workers, one.where) for one in seen] == [
        (1, "threads"),
        (3, "processes"),
        (2, "dask"),
        (1, "processes"),
    ]
    assert CliRunner().invoke(app, ["ingest", str(video), "--workers=0"]).exit_code == 2
