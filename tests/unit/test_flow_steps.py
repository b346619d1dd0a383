"""The order of watching, its retries, and what happens to a clip that fails."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prefect.client.schemas.objects import State, StateType

from domain.errors import (
    DatabaseError,
    HomerError,
    InputError,
    ModelError,
    ReplayMiss,
    WeightsMissing,
)
from domain.media import Video
from domain.settings import Settings, WorkSettings
from domain.watching import Watched
from evals.running import ASK, INGEST, LEARN
from flows.executors import (
    BACK_OFF_S,
    ClipFailed,
    Step,
    call_with_retries,
    direct_executor,
    is_transient,
)
from flows.ingest_video import VideoIngestion
from flows.perception_workers import PERCEIVE, PERCEIVE_ORDER, WorkerPool
from flows.prefect_executor import task_of
from flows.watching import BUILD_WINDOWS, REMEMBER, watch
from tests.support.eager_steps import EAGER
from tests.support.library import Heard

VIDEO = Video(id="0" * 16, title="talk", path="/talk.mp4", duration_ms=1)


class Work:
    """A video in the making that only takes notes."""

    def __init__(
        self, clips: int, done: int = 0, fails: dict[str, HomerError] | None = None
    ) -> None:
        self.video, self.clips, self.done, self.fails = VIDEO, clips, done, fails or {}
        self.stood_back: list[int] = []
        self.workspace = SimpleNamespace(settings=Settings(), give_way=self._stand_back)
        self.remarks: tuple[str, ...] = ()
        self.notes: list[str] = []
        self.given_up: list[tuple[int, str]] = []
        self.left, self.at_once = False, 1

    def begin(self) -> list[int]:
        return list(range(self.done, self.clips))

    def state(self) -> Any:
        return SimpleNamespace(clips=self.clips)

    def _stand_back(self) -> None:
        self.stood_back.append(len(self.notes))

    def _do(self, step: str) -> None:
        self.notes.append(step)
        if step in self.fails:
            raise self.fails[step]

    def perceive(self, clip: int) -> None:
        self._do(f"perceive {clip}")

    def remember(self, clip: int) -> None:
        self._do(f"remember {clip}")

    def build_windows(self, *, final: bool) -> None:
        self._do("build windows final" if final else "build windows")

    def give_up(self, clip: int, error: Exception) -> None:
        self.given_up.append((clip, str(error)))

    def seen_to_the_end(self) -> bool:
        return not self.left

    def finish(self) -> Watched:
        return Watched(path="x", clips=self.clips, failed=len(self.given_up))


def watched(work: Work, ahead: int = 1) -> list[str]:
    heard, pool = Heard(), WorkerPool(WorkSettings())
    pool.ahead = ahead
    watch(cast("VideoIngestion", work), EAGER, pool, heard)
    return heard.notes


def test_clips_are_remembered_in_order_and_perceived_one_ahead() -> None:
    work = Work(3)
    assert watched(work) == ["opened 3 0", "remembered 0", "remembered 1", "remembered 2"]
    assert work.notes == [
        *("perceive 0", "perceive 1", "remember 0", "perceive 2", "remember 1", "remember 2"),
        "build windows final",
    ]


@given(clips=st.integers(0, 12), ahead=st.integers(1, 6))
def test_however_many_are_ahead_they_are_remembered_in_order(clips: int, ahead: int) -> None:
    work = Work(clips)
    watched(work, ahead)
    for step in ("perceive", "remember"):
        assert [note for note in work.notes if note.startswith(step)] == [
            f"{step} {clip}" for clip in range(clips)
        ]
    begun = remembered = 0
    for note in work.notes:
        begun, remembered = begun + note.startswith("perceive"), remembered + note.startswith("rem")
        # As many as were asked for, beside the one that is remembered at the moment.
        assert begun - remembered <= ahead + 1


def test_it_stands_back_before_the_first_clip_and_between_any_two() -> None:
    work = Work(3)
    watched(work)
    before = [work.notes[count] for count in work.stood_back[1:]]
    assert work.stood_back[0] == 0
    assert before[1:] == ["perceive 2", "remember 2"]


def test_the_graph_grows_every_ten_clips_and_at_the_end() -> None:
    work = Work(23)
    watched(work)
    builds = [
        (work.notes[i - 1], note)
        for i, note in enumerate(work.notes)
        if note.startswith("build windows")
    ]
    assert builds == [
        ("remember 9", "build windows"),
        ("remember 19", "build windows"),
        ("remember 22", "build windows final"),
    ]


def test_it_goes_on_where_it_was() -> None:
    work = Work(5, done=3)
    assert watched(work)[0] == "opened 5 3"
    assert "perceive 2" not in work.notes
    assert work.notes[0] == "perceive 3"


def test_the_last_patch_waits_until_no_clip_will_come_any_more() -> None:
    """As when a clip of a video that was paused is tried again."""
    work = Work(5, done=4)
    work.left = True
    watched(work)
    assert work.notes[-1] == "build windows"


@pytest.mark.parametrize("step", ["perceive 1", "remember 1"])
def test_a_clip_whose_model_fails_is_left_and_the_rest_goes_on(step: str) -> None:
    work = Work(3, fails={step: ModelError("no answer")})
    assert watched(work) == ["opened 3 0", "remembered 0", "failed 1: no answer", "remembered 2"]
    assert work.given_up == [(1, "no answer")]


@pytest.mark.parametrize("step", ["perceive 1", "remember 1", "build windows final"])
def test_a_database_that_is_gone_stops_the_run(step: str) -> None:
    work = Work(3, fails={step: DatabaseError("gone")})
    with pytest.raises(DatabaseError, match="gone"):
        watched(work)
    assert work.given_up == []


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (ModelError("busy"), True),
        (DatabaseError("away"), True),
        (ReplayMiss("not in the record"), False),
        (ClipFailed("marked already"), False),
        (WeightsMissing("pull them"), False),
        (InputError("bad"), False),
        (ValueError("a fault"), False),
    ],
)
def test_only_what_may_pass_is_tried_again(error: Exception, again: bool) -> None:
    assert is_transient(error) is again


def failing(times: int, error: Exception, calls: list[int]) -> Callable[[], None]:
    def step() -> None:
        calls.append(1)
        if len(calls) <= times:
            raise error

    return step


def run_directly(call: Callable[[], None]) -> None:
    call_with_retries(Step("any", call), {})


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that were made, instead of making them."""
    found: list[float] = []
    monkeypatch.setattr("flows.executors.time.sleep", found.append)
    return found


@pytest.mark.parametrize("times", range(len(BACK_OFF_S) + 1))
def test_step_is_tried_again_after_longer_and_longer_pauses(times: int, slept: list[float]) -> None:
    calls: list[int] = []
    run_directly(failing(times, ModelError("busy"), calls))
    assert len(calls) == times + 1
    assert slept == list(BACK_OFF_S[:times])


@pytest.mark.parametrize(
    "step", [PERCEIVE, PERCEIVE_ORDER, REMEMBER, BUILD_WINDOWS, INGEST, ASK, LEARN]
)
def test_prefect_retries_a_step_as_the_direct_executor_does(step: Step) -> None:
    task = task_of(step)
    assert (task.name, task.task_run_name) == (step.name, step.run_name)
    assert (task.retries, task.retry_delay_seconds) == (len(BACK_OFF_S), list(BACK_OFF_S))
    for error in (ModelError("busy"), ClipFailed("marked"), ValueError("a fault")):
        failed: State[Any] = State(type=StateType.FAILED, data=error)
        again = task.retry_condition_fn and task.retry_condition_fn(task, cast("Any", None), failed)
        assert again is is_transient(error)


def test_direct_steps_perceive_in_a_thread_and_raise_the_step_s_error() -> None:
    work = cast("VideoIngestion", Work(2, fails={"perceive 1": InputError("changed")}))
    pool = WorkerPool(WorkSettings())
    with direct_executor() as executor:
        assert pool.start(executor, work, 0)() is None
        with pytest.raises(InputError, match="changed"):
            pool.start(executor, work, 1)()
