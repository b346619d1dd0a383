"""The app in a real browser: asking, the moment beside the answer, the library."""

from __future__ import annotations

import json
import shutil
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from cli.main import app
from models.toolbox import Toolbox
from store.embedded import EmbeddedPostgres
from store.home import Home
from tests.support.media import make_video
from ui.server import AppServer

if TYPE_CHECKING:
    from playwright.sync_api import Page

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
EVIL = "<img src=x onerror=alert(1)> **bold** [link](http://example.org)"
CAPTIONS = [
    {"start": 2, "end": 8, "text": "The harbour of Lisbon was rebuilt after the earthquake."},
    {"start": 40, "end": 48, "text": f"The lighthouse was painted green because {EVIL}"},
]
WAIT_MS = 90_000

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, toolbox: Toolbox) -> Iterator[Home]:
    """A data directory with an imported lecture and a watched video."""
    folder = tmp_path_factory.mktemp("app")
    home = Home(folder / "home").make()
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("HOMER_DATABASE_URL", raising=False)
        patch.setenv("HOMER_HOME", str(home.root))
        patch.setenv("HOMER_WEIGHTS", str(toolbox.weights))
        captions = folder / "lecture.jsonl"
        captions.write_text("".join(json.dumps(line) + "\n" for line in CAPTIONS))
        _must("import", "lecture", "--captions", str(captions))
        _must("ingest", str(make_video(folder / "little film.mp4", seconds=2.0)), "--direct")
        try:
            yield home
        finally:
            AppServer(home).stop()
            EmbeddedPostgres(home).stop(fast=False)


def _must(*arguments: str) -> None:
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == 0, done.stderr


@pytest.fixture(scope="module")
def address(place: Home) -> str:
    return AppServer(place, 0).start()


@pytest.fixture(scope="module")
def outside() -> list[str]:
    """The addresses that the page asked for."""
    return []


@pytest.fixture(scope="module")
def page(address: str, outside: list[str]) -> Iterator[Page]:
    """A page of a real browser; skips where there is none."""
    if not Path(CHROMIUM).exists():
        pytest.skip("no chromium: apt install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        found = browser.new_page(viewport={"width": 1280, "height": 900})
        found.set_default_timeout(WAIT_MS)
        found.on("request", lambda request: outside.append(request.url))
        found.on("dialog", lambda dialog: pytest.fail(f"a dialog opened: {dialog.message}"))
        yield found
        browser.close()


def choose(page: Page, label: str, option: str) -> None:
    """Picks an option of a select box."""
    page.get_by_role("combobox", name=label).click()
    page.get_by_role("option", name=option, exact=True).click()


def ask(page: Page, address: str, question: str, options: str = "") -> None:
    page.goto(address)
    page.get_by_role("heading", name="Ask", exact=True).wait_for()
    choose(page, "Video", "lecture")
    page.get_by_label("Question").fill(question)
    if options:
        page.get_by_text("Options, and as of when").click()
        page.get_by_label("Options, one a line").fill(options)
    page.get_by_role("button", name="Ask").click()


def seen(page: Page, text: str) -> None:
    """Waits until the text can be seen; folded parts hold it too."""
    page.get_by_text(text).filter(visible=True).first.wait_for()


def test_a_question_is_answered_with_the_moment_that_supports_it(page: Page, address: str) -> None:
    ask(page, address, "What colour was the lighthouse painted?")
    page.get_by_text("Done", exact=True).wait_for()
    page.get_by_text("Confidence 0.").wait_for()
    seen(page, "00:40-00:48")
    seen(page, "homer trajectory")


def test_words_from_outside_are_shown_as_words(page: Page, address: str) -> None:
    ask(page, address, "Why was the lighthouse painted green?")
    seen(page, EVIL)
    assert page.locator("img[src=x]").count() == 0
    # Streamlit makes a bare address a link to itself; no link may hide where it leads.
    for link in page.locator("a[href*='example.org']").all():
        assert link.inner_text() in (link.get_attribute("href") or "")
    assert page.get_by_text("bold", exact=True).count() == 0


def test_options_are_told_apart_by_letters(page: Page, address: str) -> None:
    ask(page, address, "What colour was the lighthouse?", "red\ngreen\nwhite")
    page.get_by_role("heading", name="B. green").wait_for()


def test_an_empty_question_is_asked_for(page: Page, address: str) -> None:
    page.goto(address)
    page.get_by_role("button", name="Ask").click()
    page.get_by_text("Write a question first").wait_for()


def test_the_library_shows_what_is_known_and_plays_the_video(page: Page, address: str) -> None:
    page.goto(f"{address}/library")
    page.get_by_role("heading", name="Library").wait_for()
    choose(page, "Show", "little film")
    player = page.locator("video")
    player.wait_for()
    page.wait_for_function("document.querySelector('video').readyState >= 1", timeout=WAIT_MS)
    assert 1.5 < page.evaluate("document.querySelector('video').duration") < 2.5
    choose(page, "Show", "lecture")
    page.get_by_role("tab", name="Clips").click()
    page.get_by_text("00:30-01:00 done").click()
    seen(page, "lighthouse was painted green")


def test_nothing_is_loaded_from_elsewhere(page: Page, address: str, outside: list[str]) -> None:
    page.goto(address)
    page.get_by_role("heading", name="Ask", exact=True).wait_for()
    local = (address, address.replace("http", "ws"), "data:", "blob:")
    assert outside
    assert [url for url in outside if not url.startswith(local)] == []


def status(url: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    request = urllib.request.Request(url, headers=headers)  # noqa: S310
    try:
        with urllib.request.urlopen(request) as reply:  # noqa: S310
            return reply.status, dict(reply.headers), reply.read()
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers), error.read()


def video_ids(place: Home) -> dict[str, str]:
    from memory.library import list_library
    from store.database import open_store

    with open_store(place) as store:
        return {entry.title: entry.id for entry in list_library(store)}


def test_a_part_of_a_video_can_be_had(place: Home, address: str) -> None:
    name = video_ids(place)["little film"]
    code, headers, body = status(f"{address}/video/{name}", Range="bytes=0-99")
    assert (code, len(body)) == (206, 100)
    assert headers["content-type"].startswith("video/")


@pytest.mark.parametrize(
    "path",
    [
        "/video/0000000000000000",
        "/video/little film".replace(" ", "%20"),
        "/video/..%2f..%2fetc%2fpasswd",
        "/video//etc/passwd",
        "/image/" + "0" * 64,
        "/image/..%2f..%2fhomer.toml",
        "/image/short",
    ],
)
def test_files_are_named_by_ids_only(address: str, path: str) -> None:
    code, _headers, body = status(address + path)
    assert b"root:" not in body
    # Paths that no route takes get the page itself, which then finds no such page.
    assert code in (400, 404) or b"<!doctype html>" in body.lower()


def test_a_video_known_by_captions_has_no_file(place: Home, address: str) -> None:
    assert status(f"{address}/video/{video_ids(place)['lecture']}")[0] == 404


def test_images_are_served_by_their_digest(place: Home, address: str) -> None:
    blob = next(path.name for path in place.blobs.rglob("*") if len(path.name) == 64)
    code, headers, body = status(f"{address}/image/{blob}")
    assert (code, headers["content-type"], body[:2]) == (200, "image/jpeg", b"\xff\xd8")


def test_other_hosts_are_refused(address: str) -> None:
    assert status(address, Host="evil.example")[0] == 400
