"""Schedules on a real Prefect server: put there, changed, paused, and planned by its scheduler."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from domain.errors import InputError, NotFound, SetupError
from flows.executors import report_to_prefect
from flows.schedules.deployments import ScheduleDeployments
from flows.schedules.kinds import ScheduleEntry, declared_schedules, open_schedules, parse_schedule
from services.supervisor import PrefectServer, library_tag_name, work_pool_name
from store.embedded import EmbeddedPostgres
from store.home import Home
from store.postmaster import HostIdentity

# Their lines, kinds and commands are tested without a server in the unit tests.
pytestmark = pytest.mark.full

OTHER = "0" * 32
"""The id of a library that is not ours."""
Contents = tuple[object, ...]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A data directory whose server and database are stopped in the end."""
    home = Home(tmp_path_factory.mktemp("schedules")).make()
    yield home
    PrefectServer(home).stop()
    EmbeddedPostgres(home).stop(fast=False)


@pytest.fixture(scope="module")
def api(place: Home) -> str:
    return f"{PrefectServer(place).start()}/api"


@pytest.fixture
def config(place: Home) -> Iterator[Path]:
    yield place.config
    place.config.unlink(missing_ok=True)


@pytest.fixture(scope="module")
def at_first(place: Home, api: str) -> dict[str, Contents]:
    """The schedules that are always there."""
    with open_schedules(place, api) as found:
        return contents(found)


@pytest.fixture
def book(place: Home, api: str, at_first: dict[str, Contents]) -> Iterator[ScheduleDeployments]:
    """The schedules as they are at first: the next test finds those changed here made anew."""
    with open_schedules(place, api) as found:
        yield found
        for name, now in contents(found).items():
            if now != at_first.get(name):
                found._client.delete_deployment(found._named(name).id)


def contents(book: ScheduleDeployments) -> dict[str, Contents]:
    return {
        name: (one.flow_id, one.version, one.paused, one.parameters, one.schedules[0].schedule)
        for name, one in book._deployments().items()
    }


def entry(book: ScheduleDeployments, name: str) -> ScheduleEntry:
    return book.entry(name)


def eventually(look: Callable[[], Any], good: Callable[[Any], bool], seconds: float = 90) -> Any:
    until = time.monotonic() + seconds
    while not good(found := look()):
        assert time.monotonic() < until, found
        time.sleep(0.3)
    return found


def test_at_first_only_the_check_is_on(book: ScheduleDeployments) -> None:
    assert {one.name: one.on for one in book.entries()} == {
        "alerts": False,
        "backup": False,
        "build": False,
        "check": True,
        "learn": False,
        "recap": False,
        "retain": False,
    }


def test_a_schedule_is_changed_paused_and_taken_away(book: ScheduleDeployments) -> None:
    folder = {"folder": "/videos", "when": "every 5 minutes"}
    book.put(parse_schedule("watch", folder))
    first = entry(book, "watch")
    assert (first.when, first.on, first.options["folder"]) == ("every 5 minutes", True, "/videos")
    book.pause("watch")
    assert not entry(book, "watch").on
    book.resume("watch")
    book.put(parse_schedule("watch", {**folder, "when": "daily 02:30", "stable_s": 60}))
    changed = entry(book, "watch")
    assert (changed.when, changed.on, changed.options["stable_s"]) == ("daily 02:30", True, 60)
    book.put(parse_schedule("watch", {"kind": "check"}))
    assert entry(book, "watch").kind == "check"
    book.remove("watch")
    with pytest.raises(NotFound, match="there are: alerts, backup, build, check"):
        book.pause("watch")


def test_what_is_always_there_can_only_be_paused(book: ScheduleDeployments) -> None:
    with pytest.raises(InputError, match="homer schedule pause check"):
        book.remove("check")


def test_file_says_what_people_do_not_change_later(book: ScheduleDeployments, config: Path) -> None:
    def begin(text: str) -> None:
        config.write_text(text)
        book.begin(declared_schedules(config))

    begin("[schedules.backup]\nkeep = 3\n[schedules.late]\nkind = 'check'\n")
    assert entry(book, "backup").options == {"keep": 3}
    assert entry(book, "late").declared
    book.pause("backup")
    book.put(parse_schedule("late", {"kind": "check", "when": "every 2 hours"}))
    begin("# the same\n[schedules.late]\nkind = 'check'\n[schedules.backup]\nkeep = 3\n")
    assert not entry(book, "backup").on
    assert entry(book, "late").when == "every 2 hours"
    begin("[schedules.backup]\nkeep = 4\n")
    backup = entry(book, "backup")
    assert (backup.on, backup.options) == (True, {"keep": 4})
    with pytest.raises(NotFound):
        entry(book, "late")
    begin("")
    assert not entry(book, "backup").declared


def test_prefects_scheduler_plans_runs_and_missed_ones_are_made_up_for_once(
    book: ScheduleDeployments, place: Home, api: str
) -> None:
    book.put(parse_schedule("check", {"when": "every 10 seconds"}))
    soon = eventually(lambda: entry(book, "check").next, bool)
    assert soon < datetime.now(UTC) + timedelta(seconds=15)
    later = datetime.now(UTC) + timedelta(minutes=3)
    assert book.skip_missed(later) >= 5
    assert book.skip_missed(later) == 0


def test_a_run_whose_process_was_killed_is_marked_and_one_that_lives_is_not(
    book: ScheduleDeployments, place: Home, api: str
) -> None:
    from prefect.client.orchestration import get_client
    from prefect.states import Pending, Running

    from flows.prefect_executor import BEGINS_WITHIN, WHERE, mark_dead_runs
    from flows.schedules.runs import learn

    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    with report_to_prefect(place, api), get_client(sync_client=True) as client:
        here = HostIdentity.here()

        def run_in(pid: int, where: HostIdentity | None = here) -> UUID:
            run = client.create_flow_run(learn, parameters={"answers": 1}, state=Running())
            client.update_flow_run(run.id, infrastructure_pid=f"{socket.gethostname()}:{pid}")
            if where is not None:
                client.update_flow_run_labels(run.id, {WHERE: str(where)})
            return run.id

        gone = run_in(dead.pid)
        other = here._replace(pids="1")
        runs_on = [run_in(os.getpid()), run_in(dead.pid, other), run_in(dead.pid, None)]
        waiting: dict[str, Any] = {"parameters": {"answers": 1}, "state": Pending()}
        waits = client.create_flow_run(learn, work_pool_name=book.pool, **waiting).id
        client.create_flow_run(learn, **waiting)
        assert mark_dead_runs(OTHER, datetime.now(UTC) + BEGINS_WITHIN * 2) == [gone]
        assert mark_dead_runs(book.library) == []
        state = client.read_flow_run(gone).state
        assert state is not None
        assert (state.name, state.message) == ("Crashed", "its process is gone")
        assert mark_dead_runs(book.library, datetime.now(UTC) + BEGINS_WITHIN * 2) == [waits]
        assert {client.read_flow_run(one).state_name for one in runs_on} == {"Running"}
        for one in runs_on:
            client.delete_flow_run(one)


def test_a_server_that_is_away_is_reported_in_one_line(place: Home) -> None:
    with (
        pytest.raises(SetupError, match="Prefect's server cannot be reached"),
        open_schedules(place, "http://127.0.0.1:9/api") as book,
    ):
        book.entries()


def test_two_libraries_at_one_server_have_schedules_each(book: ScheduleDeployments) -> None:
    other = ScheduleDeployments(book._client, OTHER)
    other.begin({"watch": parse_schedule("watch", {"folder": "/theirs", "when": "every hour"})})
    book.put(parse_schedule("watch", {"folder": "/ours", "when": "every 5 minutes"}))
    other.pause("check")
    assert entry(book, "check").on
    assert entry(book, "watch").options["folder"] == "/ours"
    assert entry(other, "watch").options["folder"] == "/theirs"
    mine, theirs = (one._client.read_flow_run(UUID(one.run("watch"))) for one in (book, other))
    assert (mine.work_pool_name, theirs.work_pool_name) == (book.pool, work_pool_name(OTHER))
    book.remove("watch")
    book.begin({})
    names = ["alerts", "backup", "build", "check", "learn", "recap", "retain", "watch"]
    assert [one.name for one in other.entries()] == names
    assert all(one.last is None for one in other.entries())
    for name in [one.name for one in other.entries()]:
        other._client.delete_deployment(other._named(name).id)


def test_a_video_that_another_library_watches_too_is_not_taken_for_killed(
    book: ScheduleDeployments, place: Home, api: str
) -> None:
    from prefect.client.orchestration import get_client
    from prefect.states import Running

    from flows.prefect_executor import mark_killed_runs
    from flows.schedules.runs import learn

    with report_to_prefect(place, api), get_client(sync_client=True) as client:
        reported: dict[str, Any] = {"parameters": {"answers": 1}, "state": Running()}
        ours, theirs = (
            client.create_flow_run(learn, tags=["video:a", library_tag_name(one)], **reported).id
            for one in (book.library, OTHER)
        )
        mark_killed_runs(book.library, "video:a")
        states = [client.read_flow_run(one).state_name for one in (ours, theirs)]
        assert states == ["Crashed", "Running"]
        client.delete_flow_run(theirs)
