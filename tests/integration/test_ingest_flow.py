"""Watching as a flow on a real Prefect server, and as plain calls: the same memory either way."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from sqlalchemy import update

from domain.errors import ModelError, SetupError
from domain.evaluation import QuestionPart
from domain.settings import Pool
from domain.watching import Watched
from evals.running import run_evaluation
from flows import executors, ingest_video
from flows.build import build
from flows.executors import ClipFailed, report_to_prefect
from flows.live_stream import open_stream, watch_stream
from flows.perception_workers import WorkerPool
from flows.reembed import plan_reembedding, reembed
from flows.watching import watch_files
from flows.workspace import Workspace
from models.keys_and_packages import RAY
from models.toolbox import Toolbox
from perception.perceive_clip import perceive
from perception.source import video_id
from services.supervisor import PrefectServer, ensure_login, library_id, library_tag_name
from store.database import Store
from store.embedded import EmbeddedPostgres
from store.files import Slots
from store.home import Home
from store.queries.backup import dump_video
from store.queries.clips import clips_of
from store.queries.encoders import encoders_of_library
from store.queries.evaluations import Slot
from store.tables.schema import LibraryRow
from strategies.registry import find_strategy
from tests.support.evaluation_rows import slot
from tests.support.full_suite import in_full
from tests.support.library import Heard, Quiet
from tests.support.light_models import in_little_clips, light_toolbox, read_by
from tests.support.media import make_video
from tests.support.span_deletion import watch_talk
from tests.support.streams import Fed, segment
from tests.support.worker_pools import (
    CLIPS,
    dump_of,
    eight_clips,
    limited,
    record_deliveries,
    watch_with_workers,
)


@pytest.fixture(scope="module")
def prefect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The API of a real server on a Postgres of its own, with its login in the environment."""
    home = Home(tmp_path_factory.mktemp("prefect")).make()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PREFECT_API_AUTH_STRING", ensure_login(home))
            yield f"{PrefectServer(home).start()}/api"
    finally:
        PrefectServer(home).stop()
        EmbeddedPostgres(home).stop(fast=False)


def reached(api: str) -> AbstractContextManager[Any]:
    """A client of this process asks this server, with its login."""
    from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings

    ensure_login = os.environ["PREFECT_API_AUTH_STRING"]
    return temporary_settings({PREFECT_API_URL: api, PREFECT_API_AUTH_STRING: ensure_login})


@pytest.fixture
def workspace(home: Home, store: Store, toolbox: Toolbox) -> Workspace:
    """A workspace over a fresh database: clips of two seconds, and little to look at in each."""
    return in_little_clips(home, store, toolbox)


@pytest.fixture
def video(tmp_path: Path) -> Path:
    return make_video(tmp_path / "little.mp4", seconds=5.0)


def run(workspace: Workspace, *paths: Path, **options: Any) -> tuple[list[Watched], list[str]]:
    heard = Heard()
    return list(watch_files(workspace, paths, heard, **options)), heard.notes


def dumped(workspace: Workspace, outcome: Watched) -> list[str]:
    assert outcome.video, outcome.error
    with workspace.store.begin() as session:
        return list(dump_video(session, outcome.video))


def eventually(look: Callable[[], object], expected: object) -> bool:
    """Whether what is seen comes to be ``expected`` within a minute."""
    until = time.monotonic() + 60
    while look() != expected:
        if time.monotonic() > until:
            return False
        time.sleep(0.2)
    return True


def runs_of(api: str, video: str) -> list[tuple[str, str, int]]:
    """State, message and number of task runs of each flow run of a video."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId, FlowRunFilterTags

    tagged = FlowRunFilter(tags=FlowRunFilterTags(all_=[f"video:{video}"]))
    with reached(api), get_client(sync_client=True) as client:
        return [
            (
                (run.state.name or "") if run.state else "",
                (run.state.message or "") if run.state else "",
                len(
                    client.read_task_runs(
                        flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[run.id]))
                    )
                ),
            )
            for run in client.read_flow_runs(flow_run_filter=tagged)
        ]


def test_a_flow_and_plain_calls_make_the_same_memory(
    workspace: Workspace,
    video: Path,
    prefect: str,
    make_database: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PREFECT_API_URL", prefect)
    (flowed,), notes = run(workspace, video)
    assert notes == ["opened 3 0", "remembered 0", "remembered 1", "remembered 2"]
    assert (flowed.clips, flowed.fresh, flowed.failed) == (3, 3, 0)
    name, expected = flowed.video, [("Completed", 3 + 3 + 1)]
    # The server writes task runs down a moment after they ran.
    assert eventually(lambda: [(run[0], run[2]) for run in runs_of(prefect, name)], expected)
    from store.database import open_store

    with open_store(workspace.home, make_database()) as other:
        plain_workspace = Workspace(workspace.home, other, workspace.profile, workspace.toolbox)
        (plain,), _notes = run(plain_workspace, video, direct=True)
        assert dumped(plain_workspace, plain) == dumped(workspace, flowed)


def test_a_build_is_a_flow_run_with_a_task_for_each_step(
    workspace: Workspace, video: Path, prefect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREFECT_API_URL", prefect)
    (outcome,), _notes = run(workspace, video, direct=True)
    name, strategy = outcome.video, find_strategy("worldmm")
    before = runs_of(prefect, name)
    heard: list[tuple[int, int]] = []
    made = build(workspace, name, strategy, lambda *at: heard.append(at), api=prefect)
    assert (made.clips, made.total, heard[-1]) == (3, 3, (3, 3))
    assert eventually(
        lambda: [(one[0], one[2]) for one in runs_of(prefect, name) if one not in before],
        [("Completed", 1)],
    )
    assert build(workspace, name, strategy, lambda *_: None).clips == 0


@pytest.mark.full
@pytest.mark.parametrize("pool", ["dask", "ray"])
def test_two_workers_of_a_cluster_share_eight_clips_and_make_the_same_memory(
    home: Home,
    store: Store,
    tmp_path: Path,
    prefect: str,
    make_database: Any,
    monkeypatch: Any,
    pool: Pool,
) -> None:
    if pool == "ray" and not RAY.installed:
        pytest.skip(f"Ray is not installed; {RAY.hint}")
    monkeypatch.setenv("PREFECT_API_URL", prefect)
    box, recording = light_toolbox(tmp_path / "notes", meeting=2), eight_clips(tmp_path)
    delivered = record_deliveries(monkeypatch)
    flowed, failures = watch_with_workers(
        Workspace(home, store, box.profile, box), 2, pool, recording, direct=False
    )
    assert failures == []
    assert sorted(clip for clip, _by in delivered) == list(range(CLIPS))
    assert len({by for _clip, by in delivered}) == 2
    read = read_by(box.weights)
    assert (len(read), len(set(read))) == (CLIPS, 2)
    from store.database import open_store

    alone = light_toolbox(tmp_path / "alone")
    with open_store(home, make_database()) as other:
        plain, _ = watch_with_workers(
            Workspace(home, other, alone.profile, alone), 1, "threads", recording
        )
        assert dump_of(other, plain) == dump_of(store, flowed)


def test_a_video_already_watched_needs_no_server(
    workspace: Workspace, video: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (first,), _notes = run(workspace, video, direct=True)
    before = dumped(workspace, first)

    def refuse(_home: Home) -> str:
        raise AssertionError("no server is needed")

    monkeypatch.setattr(executors, "api_url", refuse)
    copy = tmp_path / "another name.mp4"
    copy.write_bytes(video.read_bytes())
    (again,), notes = run(workspace, copy)
    assert (again.fresh, again.clips, notes) == (0, 3, [])
    assert dumped(workspace, again) == before


def test_without_a_server_it_goes_on_and_says_so(
    workspace: Workspace, video: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_home: Home) -> str:
        raise SetupError("no port is free")

    monkeypatch.setattr(executors, "api_url", refuse)
    (outcome,), notes = run(workspace, video)
    assert outcome.exit_code == 0
    assert (notes[0], notes[-1]) == ("going on without Prefect: no port is free", "remembered 2")


@pytest.mark.parametrize("direct", [True, in_full(False)], ids=["direct", "flow"])
def test_a_model_that_was_away_for_a_moment_is_asked_again(
    workspace: Workspace, video: Path, prefect: str, monkeypatch: pytest.MonkeyPatch, direct: bool
) -> None:
    monkeypatch.setenv("PREFECT_API_URL", prefect)
    calls: list[int] = []

    def sometimes(*args: Any) -> Any:
        calls.append(args[0].clip.index)
        if calls.count(1) == 1 and calls[-1] == 1:
            raise ModelError("busy")
        return perceive(*args)

    monkeypatch.setattr("perception.perceive_clip.perceive", sometimes)
    (outcome,), notes = run(workspace, video, direct=direct)
    assert (outcome.exit_code, calls.count(1)) == (0, 2)
    assert [note for note in notes if note.startswith("failed")] == []


@pytest.mark.parametrize("direct", [in_full(True), False], ids=["direct", "flow"])
def test_a_clip_that_fails_is_left_and_tried_again_by_the_next_run(
    workspace: Workspace, video: Path, prefect: str, monkeypatch: pytest.MonkeyPatch, direct: bool
) -> None:
    monkeypatch.setenv("PREFECT_API_URL", prefect)

    def never(raw: Any, *args: Any) -> Any:
        if raw.clip.index == 1:
            raise ClipFailed("it went wrong")
        return perceive(raw, *args)

    with monkeypatch.context() as patch:
        patch.setattr("perception.perceive_clip.perceive", never)
        patch.setattr(ingest_video.VideoIngestion, "give_up", _give_up)
        (left,), notes = run(workspace, video, direct=direct)
    assert "failed 1: it went wrong" in notes
    assert left.exit_code == 4
    assert left.video
    with workspace.store.begin() as session:
        states = [clip.state for clip in clips_of(session, left.video)]
    assert states == ["done", "failed", "done"]
    (again,), notes = run(workspace, video, direct=direct)
    assert (notes, again.exit_code) == (["opened 3 2", "remembered 1"], 0)


GIVE_UP = ingest_video.VideoIngestion.give_up


def _give_up(work: ingest_video.VideoIngestion, clip: int, error: Exception) -> None:
    """As for an error that no step has marked yet."""
    from domain.media import ClipState
    from store.queries.clips import mark_clip

    with work.workspace.store.begin() as session:
        mark_clip(session, work.video.id, clip, ClipState.FAILED, error=str(error))
    GIVE_UP(work, clip, ClipFailed(str(error)))


def test_a_run_that_was_killed_is_marked_by_the_next(
    workspace: Workspace, tmp_path: Path, prefect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREFECT_API_URL", prefect)
    video = make_video(tmp_path / "killed.mp4", seconds=1.5)
    from prefect.client.orchestration import get_client
    from prefect.states import Running

    from flows.schedules.runs import ingest

    identifier = video_id(video)
    with reached(prefect), get_client(sync_client=True) as client:
        ours = [f"video:{identifier}", library_tag_name(library_id(workspace.store))]
        client.create_flow_run(ingest, tags=ours, state=Running())
    run(workspace, video)
    states = sorted(state for state, _message, _tasks in runs_of(prefect, identifier))
    assert states == ["Completed", "Crashed"]
    with reached(prefect), get_client(sync_client=True) as client:
        output = {run.infrastructure_pid for run in client.read_flow_runs(limit=200)}
    assert f"{socket.gethostname()}:{os.getpid()}" in output


@pytest.mark.full
def test_a_stream_is_watched_in_flow_runs_of_a_few_clips_each(
    workspace: Workspace, tmp_path: Path, prefect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREFECT_API_URL", prefect)
    monkeypatch.setattr("flows.live_stream.RUN_CLIPS", 1)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    place = Slots("perceive", 1).acquire()
    place.__enter__()
    fed = Fed(tmp_path / "door", [segment(tmp_path, "three", 3.0)])
    heard = Heard()

    def let_go(_crew: WorkerPool, _seconds: float) -> None:
        heard.said("waited for a place")
        place.__exit__(None, None, None)

    monkeypatch.setattr(WorkerPool, "_wait", let_go)
    with (
        fed.feeding() as source,
        open_stream(limited(workspace, 1), source, stop=fed.stop, clock=fed.clock) as work,
    ):
        watch_stream(work, heard)
    assert heard.notes[:2] == ["opened 0 0", "waited for a place"]
    assert heard.notes[-2:] == ["remembered 0", "remembered 1"]
    found = sorted(state for state, _message, _tasks in runs_of(prefect, work.video.id))
    assert found == ["Completed"] * 3


@pytest.mark.full
def test_the_encoder_is_changed_in_a_flow(
    prefect: str, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREFECT_API_URL", prefect)
    from prefect.client.orchestration import get_client

    watch_talk(workspace.store)
    with workspace.store.begin() as session:
        session.execute(update(LibraryRow).values(text_encoder="older"))
    plan = plan_reembedding(workspace).model_copy(update={"encoder": workspace.toolbox.text.name})
    assert plan.rows
    reembed(workspace, plan, Quiet(), print)
    with reached(prefect), get_client(sync_client=True) as client:
        states = {run.name: run.state_name for run in client.read_flow_runs()}
    assert states[plan.encoder] == "Completed"
    with workspace.store.begin() as session:
        assert encoders_of_library(session).text == plan.encoder


class Counted:
    """An evaluation of a video and two questions, which notes what is done to it."""

    name = "counted"
    plan = SimpleNamespace(videos=[SimpleNamespace(name="v")])

    def __init__(self, workspace: Workspace) -> None:
        self.workspace, self.done = workspace, list[str]()

    def ingest(self, video: str) -> None:
        self.done.append(f"ingest {video}")

    def batches(self) -> list[int]:
        return [0]

    def pending(self, _batch: int) -> list[Slot]:
        return [slot(f"0{c}", "v", part=QuestionPart.TEST) for c in "ab"]

    def answer(self, one: Slot) -> None:
        self.done.append(f"ask {one.question}")

    def over(self) -> bool:
        return False

    def should_learn_from(self, _batch: int) -> bool:
        return True

    def learned(self, batch: int) -> None:
        self.done.append(f"learned {batch}")


@pytest.mark.full
def test_an_evaluation_in_a_flow_takes_the_same_steps(prefect: str, workspace: Workspace) -> None:
    from prefect.client.orchestration import get_client

    with report_to_prefect(workspace.home, prefect), reached(prefect):
        run_evaluation(cast(Any, evaluation := Counted(workspace)), 1, prefect)
        with get_client(sync_client=True) as client:
            states = {run.name: run.state_name for run in client.read_flow_runs()}
            learned = {run.name: run.state_name for run in client.read_task_runs()}
    assert evaluation.done == ["ingest v", "ask 0a", "ask 0b", "learned 0"]
    assert (states["counted"], learned["learn after batch 0"]) == ("Completed", "Completed")
