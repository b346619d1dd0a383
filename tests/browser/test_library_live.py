"""The library in a real browser: a flow watches, is killed and gone on with, clips are retried."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from domain.media import ClipState
from flows.executors import report_to_prefect
from flows.jobs import Job, Jobs
from library.videos import all_videos
from services.supervisor import PrefectServer
from store import postmaster
from store.database import open_store
from store.home import Home
from store.queries.clips import mark_clip
from store.queries.videos import FAILED, set_video_state
from tests.browser.pages import done, opened, seen, settled
from tests.support.media import make_video

if TYPE_CHECKING:
    from playwright.sync_api import Page

Keep = Callable[[str], None]
# These wait for real models for minutes.
pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]


@pytest.fixture(scope="module", autouse=True)
def servers(place: Home) -> object:
    """Prefect's server is stopped with the rest."""
    make_video(place.root.parent / "long film.mp4", seconds=180.0, size=(64, 48), fps=5)
    yield None
    for job in Jobs(place).every():
        Jobs(place).pause(job.id)
    PrefectServer(place).stop()


def running(place: Home) -> Job:
    (found,) = [one for one in Jobs(place).every() if one.running]
    return found


def entry(place: Home, title: str) -> tuple[str, int, int]:
    with open_store(place) as store:
        found = {one.title: one for one in all_videos(store).items}
    one = found.get(title)
    return (one.state, one.done, one.clips) if one else ("", 0, 0)


def test_a_flow_watches_with_progress(page: Page, address: str, place: Home, keep: Keep) -> None:
    opened(page, f"{address}/library", "Library")
    page.get_by_text("Add a video").click()
    field = page.get_by_role("textbox", name="File or folder on this machine")
    field.fill(str(place.root.parent / "long film.mp4"))
    field.press("Tab")
    settled(page)
    page.get_by_role("button", name="Watch", exact=True).click()
    seen(page, "long film.mp4 being watched")
    # Two clips are needed to tell how long the others will take.
    page.get_by_text("of 6 clips, about").filter(visible=True).first.wait_for()
    assert page.get_by_role("progressbar").count() == 1
    keep("watching")
    assert PrefectServer(place).address() is not None


def test_a_killed_watcher_is_reported_on_an_open_page(page: Page, place: Home, keep: Keep) -> None:
    found = running(place)
    assert "--direct" not in found.arguments
    os.kill(found.pid, signal.SIGKILL)
    seen(page, "long film.mp4 stopped early")
    seen(page, "its process was killed")
    done(page, "3:00 · Paused,")
    assert page.get_by_role("button", name="Pause").count() == 0
    assert [one.running for one in Jobs(place).every()] == [False]
    keep("killed")


def test_it_goes_on_to_the_end_by_one_press(page: Page, place: Home, keep: Keep) -> None:
    assert entry(place, "long film")[0] == "paused"
    page.get_by_role("button", name="Continue").click()
    seen(page, "long film.mp4 being watched")
    page.get_by_text("3:00 · Ready").wait_for()
    seen(page, "long film.mp4 watched")
    keep("gone_on")
    assert entry(place, "long film") == ("done", 6, 6)
    # Both runs are on record, and none is taken for one that runs.
    assert sorted(states(place)) == ["Completed", "Crashed"]


def states(place: Home) -> list[str]:
    with report_to_prefect(place, f"{PrefectServer(place).address()}/api"):
        from prefect.client.orchestration import get_client

        with get_client(sync_client=True) as client:
            return [run.state.name or "" for run in client.read_flow_runs() if run.state]


def test_press_tries_a_failed_clip_again(page: Page, address: str, place: Home, keep: Keep) -> None:
    with open_store(place) as store:
        name = next(one.id for one in all_videos(store).items if one.title == "long film")
        with store.begin() as session:
            for clip in (1, 4):
                mark_clip(session, name, clip, ClipState.FAILED, "the model was away")
            set_video_state(session, name, FAILED, "2 clips could not be watched")
    opened(page, f"{address}/library", "Library")
    page.get_by_text("2 failed clips").click()
    seen(page, "clip 4, 2:00-2:30: the model was away")
    keep("failed")
    page.get_by_role("button", name="Try clip 4 again").click()
    page.get_by_text("5 of 6 clips, 1 failed").wait_for()
    page.get_by_text("1 failed clip").wait_for()
    page.get_by_role("button", name="Try all again").click()
    page.get_by_text("3:00 · Ready").wait_for()
    assert entry(place, "long film") == ("done", 6, 6)


def test_what_a_terminal_watches_is_seen_by_an_open_page(
    page: Page, address: str, place: Home, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """And it is seen to end, with nobody pressing anything."""
    recording = make_video(
        tmp_path_factory.mktemp("other") / "from a terminal.mp4", seconds=65.0, size=(64, 48), fps=6
    )
    opened(page, f"{address}/library", "Library")
    command = [sys.executable, "-m", "cli", "ingest", "--direct", str(recording)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as work:
        seen(page, "from a terminal being watched by another homer process")
        work.wait(300)
    page.get_by_text("1:05 · Ready").wait_for()
    page.get_by_text("being watched by another").wait_for(state="hidden")


def test_a_killed_database_is_back_on_an_open_page(page: Page, address: str, place: Home) -> None:
    """Nobody loads the page again: what is pressed next works."""
    opened(page, f"{address}/library", "Library")
    server = postmaster.read_pid_file(place.postgres)
    assert server is not None
    os.kill(server.pid, signal.SIGKILL)
    time.sleep(1)
    page.get_by_label("Search the titles").fill("long")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="lecture").wait_for(state="hidden")
    page.get_by_role("link", name="long film").wait_for()
    assert page.get_by_text("Traceback").count() == 0
