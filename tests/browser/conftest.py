"""A real browser before the real app, over a small library; screenshots of what it shows."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import select, update
from typer.testing import CliRunner

from cli.main import app
from domain.asking import Question
from domain.media import ClipState
from library.memory import events
from library.videos import all_titles
from models.toolbox import Toolbox
from people.across_videos import rename
from perception.source import cache_original, stat_digest
from services.supervisor import AppServer
from store.database import open_store
from store.embedded import EmbeddedPostgres
from store.home import Home
from store.queries.clips import mark_clip
from store.queries.videos import FAILED, set_video_state
from store.tables.schema import VideoRow
from tests.browser.pages import settled
from tests.support.app_pages import EVIL
from tests.support.media import make_video
from tests.support.runs import ask
from tests.support.several_videos import list_people

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

ROOT = Path(__file__).parents[2]
CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
CAPTIONS = [
    {"start": 2, "end": 8, "text": "The harbour of Lisbon was rebuilt.", "speaker": "Ann"},
    {"start": 20, "end": 26, "text": "I remember the earthquake well.", "speaker": "Bob"},
    {"start": 40, "end": 48, "text": f"The lighthouse was painted green because {EVIL}"},
]
WAIT_MS = 90_000


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, toolbox: Toolbox) -> Iterator[Home]:
    """A data directory with a lecture, whose film is a minute long, and a film to watch."""
    folder = tmp_path_factory.mktemp("app")
    home = Home(folder / "home").make()
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("HOMER_DATABASE_URL", raising=False)
        patch.setenv("HOMER_HOME", str(home.root))
        patch.setenv("HOMER_WEIGHTS", str(toolbox.weights))
        # The app and what it starts are of this checkout, wherever they run.
        patch.setenv("PYTHONPATH", str(ROOT))
        captions = folder / "lecture.jsonl"
        captions.write_text("".join(json.dumps(line) + "\n" for line in CAPTIONS))
        done = CliRunner().invoke(app, ["import", "lecture", "--captions", str(captions)])
        assert done.exit_code == 0, done.stderr
        recording = make_video(folder / "a minute.mp4", seconds=60.0, size=(64, 48), fps=5)
        make_video(folder / "little film.mp4", seconds=2.0)
        with open_store(home) as store, store.begin() as session:
            session.execute(update(VideoRow).values(path=str(recording)))
            # The id is the captions' digest: for the app the film is as if it were of that video.
            for name in session.scalars(select(VideoRow.id)):
                cache_original(home, name, stat_digest(recording))
        try:
            yield home
        finally:
            AppServer(home).stop()
            EmbeddedPostgres(home).stop(fast=False)


@pytest.fixture(scope="module")
def address(place: Home) -> str:
    return AppServer(place, 0).start()


@pytest.fixture(scope="module")
def outside() -> list[str]:
    return []


@pytest.fixture(scope="module")
def ways(place: Home, toolbox: Toolbox) -> dict[str, str]:
    """The address of every page in its fullest state, by the page's heading."""
    with open_store(place) as store:
        (name,) = all_titles(store)
        asked = ask(store, toolbox, Question(text="What was painted green?", videos=(name,)))
        with store.begin() as session:
            mark_clip(session, name, 0, ClipState.FAILED, "the model was away")
            set_video_state(session, name, FAILED, "1 clips could not be watched")
        rename(store, name, str(list_people(store, name)[0].number), "Ada")
        event = events(store, name).items[0].number
    return {
        "Ask": f"?trajectory={asked.trajectory_id}",
        "Trajectory": f"trajectory?trajectory={asked.trajectory_id}&round=1",
        "Search": "search?q=lighthouse",
        "Library": f"library?delete={name}",
        "Video": f"video?video={name}&segment={event}",
        "People": f"people?video={name}&person=0",
        "Skills": "skills",
        "Evaluations": "evaluations",
        "Compare": f"compare?trajectory={asked.trajectory_id}",
        "Health": "health",
        "Alerts": "alerts",
        "Recaps": "recaps",
        "History": "history",
        "Schedules": "schedules",
    }


@pytest.fixture(scope="module")
def context() -> Iterator[BrowserContext]:
    """A real browser; skips where there is none."""
    if not Path(CHROMIUM).exists():
        pytest.skip("no chromium: apt install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        made = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
        made.set_default_timeout(WAIT_MS)
        yield made
        browser.close()


@pytest.fixture(scope="module")
def page(context: BrowserContext, outside: list[str]) -> Page:
    found = context.new_page()
    found.on("request", lambda request: outside.append(request.url))
    found.on("dialog", lambda dialog: pytest.fail(f"a dialog opened: {dialog.message}"))
    return found


@pytest.fixture(scope="session")
def shots() -> Path | None:
    """The folder that ``$HOMER_SHOTS`` names for screenshots; without it none are taken."""
    named = os.environ.get("HOMER_SHOTS")
    if not named:
        return None
    Path(named).mkdir(parents=True, exist_ok=True)
    return Path(named)


@pytest.fixture
def keep(page: Page, shots: Path | None) -> Callable[[str], None]:
    """Check that a page is not broken, and take a picture of it where there is a folder for it."""

    def taken(name: str) -> None:
        settled(page)
        page.wait_for_timeout(500)
        if shots is not None:
            picture(shots / f"{name}.png")
        assert page.get_by_text("Traceback").count() == 0
        assert page.locator("[data-testid=stException], [data-testid=stJson]").count() == 0

    def picture(path: Path) -> None:
        tall = page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight")
        page.set_viewport_size({"width": 1280, "height": max(900, min(int(tall) + 20, 5000))})
        page.screenshot(path=str(path))
        page.set_viewport_size({"width": 1280, "height": 900})

    return taken
