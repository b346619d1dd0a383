"""File after file: a bad one stops no other, the known are passed over, one server is enough."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agent.strategy import Strategy
from domain.errors import DatabaseError, InputError, MediaError, ModelError, SetupError
from domain.media import Video
from domain.settings import MemorySettings, Pool, Settings, WorkSettings
from domain.watching import Watched
from flows import executors, watching
from flows.build import Built
from flows.perception_workers import WorkerPool
from flows.video_locks import with_current_state
from flows.watching import watch_files
from store.queries.library import LibraryEntry

VIDEO = Video(id="0" * 16, title="t", path=None, duration_ms=1)


class Work:
    """A video that is open; ``settled`` when nothing is left of it."""

    def __init__(self, workspace: Any, name: str, settled: bool) -> None:
        self.name, self._settled, self.workspace, self.video = name, settled, workspace, VIDEO

    def settled(self) -> bool:
        return self._settled

    def result(self) -> Watched:
        return Watched(path=self.name, video=VIDEO.id, clips=5)


class Notes:
    """What was done, in order."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.pools: list[WorkerPool] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *output: self.told.append(f"{name} {' '.join(map(str, output))}")


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> Notes:
    """Files are opened, watched and closed in name only; ``known-*`` are watched already."""
    kept = Notes()

    @contextmanager
    def open_video(
        workspace: object, path: Path, *, again: bool, only: Collection[int], **_choices: object
    ) -> Iterator[Work]:
        if path.name.startswith("bad"):
            raise MediaError(f"{path}: empty")
        if path.name.startswith("busy"):
            raise InputError(f"{path.name} is being watched by another homer")
        if path.name.startswith("away"):
            raise DatabaseError("the database is away")
        kept.told.append(
            f"open {path.name}{' again' if again else ''}{f' only {only}' if only else ''}"
        )
        yield Work(workspace, path.name, path.name.startswith("known"))
        kept.told.append(f"close {path.name}")

    def watch(work: Work, _executor: object, *, pool: WorkerPool, listener: object) -> Watched:
        assert listener is not None
        kept.pools.append(pool)
        name = work.name
        kept.told.append(f"watch {name}")
        return Watched(path=name, video=VIDEO.id, clips=5, fresh=5, failed="hard" in name)

    monkeypatch.setattr(watching, "open_video", open_video)
    monkeypatch.setattr(watching, "watch", watch)

    def api_url(home: object) -> str:
        kept.told.append("server?")
        raise SetupError("no port is free")

    monkeypatch.setattr(executors, "api_url", api_url)
    return kept


def run(
    notes: Notes,
    *names: str,
    direct: bool = True,
    pool: Pool | None = None,
    memory: tuple[str, ...] = (),
    **more: Any,
) -> list[Watched]:
    settings = Settings(work=WorkSettings(pool=pool), memory=MemorySettings(strategies=memory))
    workspace: Any = SimpleNamespace(home=None, store=None, settings=settings, turn=nullcontext)
    paths = [Path(name) for name in names]
    return list(watch_files(workspace, paths, notes, direct=direct, **more))


def test_each_file_is_opened_watched_and_closed_before_the_next(notes: Notes) -> None:
    outcomes = run(notes, "a", "b")
    assert notes.told == [*("open a", "watch a", "close a"), *("open b", "watch b", "close b")]
    assert [one.path for one in outcomes] == ["a", "b"]
    assert [one.exit_code for one in outcomes] == [0, 0]


@pytest.mark.parametrize("bad", ["bad", "busy"])
def test_a_file_that_cannot_be_watched_stops_no_other(notes: Notes, bad: str) -> None:
    first, second, third = run(notes, "a", bad, "b")
    assert (first.exit_code, second.exit_code, third.exit_code) == (0, 2, 0)
    assert not second.video
    assert bad in str(second.error)
    assert notes.told[-1] == "close b"


def test_memories_of_strategies_are_built(notes: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(_: object, video: str, strategy: Strategy, __: object) -> Built:
        notes.told.append(f"build {strategy.name} {video}")
        return Built(VIDEO, strategy.name, 5, 5)

    monkeypatch.setattr(watching, "build", build)
    run(notes, "a", "bad", memory=("worldmm",))
    assert notes.told == [
        *("open a", "watch a", "close a", f"build worldmm {VIDEO.id}"),
        "said t: the memory of worldmm is built",
    ]


@pytest.mark.parametrize("name", ["oracle", "plain-rag"])
def test_a_strategy_that_builds_nothing_is_refused_before_all(notes: Notes, name: str) -> None:
    with pytest.raises(InputError, match=name):
        run(notes, "a", memory=(name,))
    assert notes.told == []


def test_a_database_that_is_gone_stops_them_all(notes: Notes) -> None:
    with pytest.raises(DatabaseError, match="away"):
        run(notes, "a", "away", "b")
    assert notes.told[-1] == "close a"


def test_what_is_known_is_passed_over_without_asking_for_a_server(notes: Notes) -> None:
    (outcome,) = run(notes, "known", direct=False)
    assert outcome.fresh == 0
    assert notes.told == ["open known", "close known"]


def test_a_server_that_does_not_come_up_is_asked_for_once_and_told_of_once(notes: Notes) -> None:
    run(notes, "known", "a", "b", direct=False)
    assert notes.told.count("server?") == 1
    said = [output for output in notes.told if output.startswith("said ")]
    assert said == ["said going on without Prefect: no port is free"]
    assert [output for output in notes.told if output.startswith("watch")] == ["watch a", "watch b"]


def test_all_files_have_the_same_workers(notes: Notes) -> None:
    """So that models are loaded once for a folder of videos."""
    run(notes, "a", "bad", "b")
    first, second = notes.pools
    assert first is second
    with pytest.raises(CancelledError):
        first._present()


@pytest.mark.parametrize("pool", ["dask", "ray"])
def test_without_a_server_there_is_no_cluster_which_is_reported(notes: Notes, pool: Pool) -> None:
    run(notes, "a", pool=pool)
    said = [output for output in notes.told if output.startswith("said ")]
    assert said == [f"said without Prefect's server processes take the place of {pool.title()}"]
    assert "watch a" in notes.told


def test_clips_that_failed_for_good_are_tried_again_on_demand(notes: Notes) -> None:
    run(notes, "a", again=True)
    assert notes.told[0] == "open a again"


def test_a_video_with_clips_left_has_its_own_code(notes: Notes) -> None:
    assert [one.exit_code for one in run(notes, "hard", "a")] == [4, 0]
    assert Watched.failing("x", ModelError("x")).exit_code == 4
    assert Watched.failing("x", SetupError("x")).exit_code == 3


@pytest.mark.parametrize(
    ("state", "busy", "output"),
    [("watching", False, "paused"), ("watching", True, "watching"), ("done", False, "done")],
)
def test_a_video_of_a_killed_watcher_is_paused(state: str, busy: bool, output: str) -> None:
    row: dict[str, Any] = {"path": None, "error": None, "duration_ms": 1, "profile": "local"}
    counts = {"clips": 2, "done": 1, "failed": 0}
    entry = LibraryEntry(id="a", title="a", state=state, **row, **counts)
    assert with_current_state(entry, {"a"} if busy else {"b"}).state == output
