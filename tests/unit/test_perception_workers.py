"""Who perceives: where, how far ahead, and what happens when a worker is gone."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import BrokenExecutor, CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar, cast

import psutil
import pytest

from domain.errors import SetupError
from domain.media import Clip, Percept
from domain.settings import Settings, WatchSettings, WorkSettings
from domain.time import TimeSpan
from flows.executors import Executor, Step, call_with_retries, is_transient
from flows.perception_workers import ProcessPool, WorkerKilled, WorkerPool, threads_per_worker
from flows.prefect_executor import dask_runner, task_runner
from models.profile import Profile
from models.toolbox import Toolbox
from perception import perceive_clip
from perception.perceive_clip import Delivery, Order, Perceived, carry_out
from perception.source import SourceInfo
from store.files import Slots
from store.home import Home
from tests.support.light_models import nap, pid

CLIP = Clip(index=3, span=TimeSpan.of(0, 1000))
DELIVERED = Delivery(Perceived(Percept(clip=CLIP), {}), 0.5, "somebody")
INFO = SourceInfo(1000, 0, 0, False, True, 0.0, cast("Any", 0))
NOBODY = cast("Order", None)


class Work:
    """A video that only takes notes."""

    def __init__(self, settings: WorkSettings | None = None) -> None:
        self.notes: list[str] = []
        self.workspace = SimpleNamespace(settings=Settings(work=settings or WorkSettings()))

    def perceive(self, clip: int) -> None:
        self.notes.append(f"perceived {clip} here")

    def order(self, clip: int, threads: int) -> Order:
        self.notes.append(f"ordered {clip}")
        return Order(Path("/f.mp4"), INFO, clip, cast("Any", None), WatchSettings(), threads)

    def take(self, delivery: Delivery) -> None:
        self.notes.append(f"took {delivery.perceived.percept.clip.index} from {delivery.by}")


@dataclass
class Scripted:
    """An executor that breaks where it is told to."""

    replies: list[Delivery | Exception]
    ended: int = 0
    threads: list[int] = field(default_factory=list)

    def submit(self, _work: Callable[[Order], Delivery], order: Order) -> Future[Delivery]:
        self.threads.append(order.threads)
        future: Future[Delivery] = Future()
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            future.set_exception(reply)
        else:
            future.set_result(reply)
        return future

    def end(self) -> None:
        self.ended += 1


def crew_of(*executors: Scripted, workers: int = 2) -> tuple[WorkerPool, list[int]]:
    begun: list[int] = []

    def begin(count: int) -> ProcessPool:
        begun.append(count)
        return cast("ProcessPool", executors[len(begun) - 1])

    return WorkerPool(WorkSettings(workers=workers, pool="processes"), begin), begun


def perceive(crew: WorkerPool, work: Work, clip: int = 3) -> None:
    crew.perceive(cast(Any, work), clip)


@pytest.mark.parametrize(
    ("given", "where", "ahead"),
    [
        ({}, "threads", 1),
        ({"workers": 2}, "processes", 4),
        ({"workers": 3, "pool": "threads"}, "threads", 6),
        ({"workers": 1, "pool": "processes"}, "processes", 1),
        ({"workers": 2, "pool": "dask"}, "dask", 4),
    ],
)
def test_workers_are_where_named(given: dict[str, Any], where: str, ahead: int) -> None:
    settings = WorkSettings(**given)
    assert settings.where == where
    assert WorkerPool(settings).ahead == ahead


def test_a_single_worker_is_this_process_and_begins_no_other() -> None:
    work = Work()
    with WorkerPool(WorkSettings()) as crew:
        perceive(crew, work)
    assert work.notes == ["perceived 3 here"]


def test_no_more_clips_at_a_time_than_the_machine_may_perceive() -> None:
    with Slots("perceive", 1).acquire(), WorkerPool(WorkSettings(at_once=1)) as crew:
        with ThreadPoolExecutor(1) as pool:
            waits = pool.submit(perceive, crew, work := Work())
            time.sleep(0.1)
            assert work.notes == []
            crew.close()
        with pytest.raises(CancelledError):
            waits.result()
    with WorkerPool(WorkSettings(at_once=1)) as crew:
        perceive(crew, work)
    assert work.notes == ["perceived 3 here"]


def test_cluster_workers_wait_for_a_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("flows.perception_workers.carry_out", lambda _order: DELIVERED)
    settings = WorkSettings(workers=2, pool="dask", at_once=1)
    work, begun = Work(settings), list[Future[object]]()
    with ThreadPoolExecutor(1) as threads, WorkerPool(settings) as crew:

        def send(step: Step, given: Mapping[str, object]) -> Future[object]:
            sent = pickle.loads(pickle.dumps(given))  # noqa: S301
            begun.append(threads.submit(step.call, **sent))
            return begun[-1]

        elsewhere = Executor(call_with_retries, send, elsewhere=True)
        with Slots("perceive", 1).acquire():
            wait = crew.start(elsewhere, cast(Any, work), 3)
            with pytest.raises(TimeoutError):
                begun[0].result(0.2)
        wait()
    assert work.notes == ["ordered 3", "took 3 from somebody"]


def test_workers_share_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert [threads_per_worker(workers) for workers in (1, 2, 3, 8, 20)] == [8, 4, 2, 1, 1]
    executor = Scripted([DELIVERED])
    crew, _begun = crew_of(executor, workers=4)
    perceive(crew, Work())
    assert executor.threads == [2]


def test_processes_begin_once_and_bring_what_they_perceived() -> None:
    executor, work = Scripted([DELIVERED, DELIVERED]), Work()
    crew, begun = crew_of(executor)
    with crew:
        perceive(crew, work)
        perceive(crew, work)
    assert begun == [2]
    assert work.notes == 2 * ["ordered 3", "took 3 from somebody"]
    assert executor.ended == 1


def test_a_worker_that_is_gone_is_reported_and_another_takes_the_clip() -> None:
    dead, work = Scripted([BrokenExecutor("gone")]), Work()
    crew, begun = crew_of(dead, Scripted([DELIVERED]))
    with pytest.raises(WorkerKilled, match="clip 3 was killed") as output:
        perceive(crew, work)
    assert is_transient(output.value)
    assert dead.ended == 1
    perceive(crew, work)
    assert begun == [2, 2]
    assert work.notes[-1] == "took 3 from somebody"


def test_nobody_begins_anew_once_the_crew_is_sent_home() -> None:
    crew, begun = crew_of(Scripted([BrokenExecutor("ended")]))
    broken = crew._present()
    crew.close()
    with pytest.raises(CancelledError):
        crew._drop(broken)
    with pytest.raises(CancelledError) as output:
        perceive(crew, Work())
    assert not is_transient(output.value)
    assert begun == [2]


def test_what_goes_to_a_worker_and_back_is_small() -> None:
    """No frame, no sound, no model that is loaded."""
    box = Toolbox(Profile(name="p", settings=Settings()), Path("/w"))
    box.__dict__["faces"] = lambda: None
    sent = pickle.dumps(Order(Path("/f.mp4"), INFO, 3, box, WatchSettings(), 1))
    assert len(sent) < 10_000
    came = pickle.loads(sent)  # noqa: S301
    assert came.tools.recipe == box.recipe
    assert "faces" not in vars(came.tools)
    assert pickle.loads(pickle.dumps(DELIVERED)) == DELIVERED  # noqa: S301


def test_a_worker_loads_models_once_and_reads_on(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []
    used: list[object] = []

    def read(_path: Path, _info: SourceInfo, _settings: WatchSettings, first: int) -> Any:
        begun.append(first)
        for index in range(first, 10):
            yield type(
                "Raw", (), {"clip": CLIP.model_copy(update={"index": index}), "frames": ()}
            )()

    def look(raw: Any, tools: object, _settings: WatchSettings) -> Perceived:
        used.append(tools)
        return Perceived(Percept(clip=raw.clip), {})

    monkeypatch.setattr(perceive_clip, "read_clips", read)
    monkeypatch.setattr(perceive_clip, "perceive", look)
    monkeypatch.setattr(perceive_clip, "_here", type("Here", (), {})())
    first = Toolbox(Profile(name="p"), Path("/w"))
    other = Toolbox(Profile(name="p", objects="none"), Path("/w"))

    def done(clip: int, tools: Toolbox) -> int:
        order = Order(Path("/f.mp4"), INFO, clip, tools, WatchSettings(), 2)
        return carry_out(pickle.loads(pickle.dumps(order))).perceived.percept.clip.index  # noqa: S301

    assert [done(clip, first) for clip in (0, 1, 4, 5, 5, 2)] == [0, 1, 4, 5, 5, 2]
    assert begun == [0, 4, 5, 2]
    assert len(set(map(id, used))) == 1
    assert first not in used
    assert done(3, other) == 3
    assert len(set(map(id, used))) == 2


def test_processes_are_ended_in_the_middle_of_their_work() -> None:
    """As by Ctrl-C: nothing of what they were at is in memory yet."""
    processes = ProcessPool(1)
    process = psutil.Process(cast("int", processes.submit(pid, NOBODY).result()))
    napping = processes.submit(nap, NOBODY)
    processes.end()
    assert not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    with pytest.raises((BrokenExecutor, CancelledError)):
        napping.result()


def test_workers_end_with_the_process_they_work_for() -> None:
    """However it ends: nothing is left that holds memory and works for nobody."""
    code = (
        "from flows.perception_workers import ProcessPool; import os, signal\n"
        "from tests.support.light_models import nap, pid\n"
        "if __name__ == '__main__':\n"
        "    begun = ProcessPool(1)\n"
        "    print(begun.submit(pid, None).result(), flush=True)\n"
        "    begun.submit(nap, None)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    # The worker holds the pipe as long as it is there, so this waits for its end.
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == -9, done.stderr
    assert int(done.stdout) > 0


def test_dask_is_of_this_run_or_as_named(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    own = cast("Any", dask_runner(WorkSettings(workers=3, pool="dask"), home))
    assert own.cluster_kwargs["n_workers"] == 3
    assert own.cluster_kwargs["threads_per_worker"] == 1
    assert own.cluster_kwargs["local_directory"].startswith(str(home.root))
    named = WorkSettings(workers=3, pool="dask", scheduler="tcp://house:8786")
    assert cast("Any", task_runner(named, home)).address == "tcp://house:8786"
    monkeypatch.setattr("models.keys_and_packages.find_spec", lambda _module: None)
    with pytest.raises(SetupError, match=r'extra "dask".*prefect-dask distributed'):
        dask_runner(WorkSettings(pool="dask"), home)


class OfRay:
    """What Prefect's Ray runner is made with, and that it is left."""

    made: ClassVar[list[Any]] = []

    def __init__(self, address: str, init_kwargs: dict[str, Any]) -> None:
        self.made.append((address, init_kwargs))

    def __enter__(self) -> OfRay:
        return self

    def __exit__(self, *_: object) -> None:
        self.made.append("left")


def test_ray_is_of_this_run_or_as_named(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    runners = ModuleType("prefect_ray.task_runners")
    monkeypatch.setattr(runners, "RayTaskRunner", OfRay, raising=False)
    monkeypatch.setitem(sys.modules, "prefect_ray", ModuleType("prefect_ray"))
    monkeypatch.setitem(sys.modules, "prefect_ray.task_runners", runners)
    monkeypatch.setattr("models.keys_and_packages.find_spec", lambda module: module)
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "1")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "")
    settings = WorkSettings(workers=3, pool="ray")
    with task_runner(settings, home):
        address, own = OfRay.made.pop()
        assert (address, own["num_cpus"]) == ("local", 3)
        assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"
        folder = Path(own["_temp_dir"])
        assert folder.stat().st_mode & 0o077 == 0
    assert OfRay.made.pop() == "left"
    assert not folder.exists()
    with task_runner(WorkSettings(pool="ray", scheduler="ray://house:10001"), home):
        assert OfRay.made == [("ray://house:10001", {})]
    monkeypatch.setattr("models.keys_and_packages.find_spec", lambda _module: None)
    with (
        pytest.raises(SetupError, match=r'extra "ray".*prefect-ray ray'),
        task_runner(settings, home),
    ):
        pass
