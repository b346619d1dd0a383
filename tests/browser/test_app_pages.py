"""The app in a real browser: asking, stepping, playing, following, exporting, recovering."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from perception.source import cache_original, drop_cached_original, stat_digest
from store.database import open_store
from store.embedded import EmbeddedPostgres
from store.home import Home
from store.queries.videos import find_video, set_progress
from tests.browser.pages import Keep, ask, done, no_violations, opened, seen, settled, video_ids
from tests.support.media import make_video

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

pytestmark = pytest.mark.timeout(900)


def now(page: Page) -> float:
    page.wait_for_function("document.querySelector('video')?.readyState >= 1")
    return float(page.evaluate("document.querySelector('video').currentTime"))


@contextmanager
def of_file(place: Home, video: str, path: Path) -> Iterator[None]:
    with open_store(place) as store:
        with store.begin() as session:
            before = find_video(session, video).path
            set_progress(session, video, path=str(path), has_video=True)
        cache_original(place, video, stat_digest(path))
        yield
        with store.begin() as session:
            set_progress(session, video, path=before, has_video=False)
        drop_cached_original(place, video)
        cache_original(place, video, stat_digest(Path(str(before))))


def test_a_question_is_answered_and_chip_plays_moment(page: Page, address: str, keep: Keep) -> None:
    ask(page, address, "What colour was the lighthouse painted?")
    seen(page, "Confidence ")
    assert "trajectory=" in page.url
    page.locator("video").wait_for()
    page.get_by_role("button", name="▶ 0:40-0:48").first.click()
    # It plays on, so that a later look could find it past the moment.
    page.wait_for_function("(t => 40 <= t && t < 46)(document.querySelector('video')?.currentTime)")
    # What the mouse rests on shows its tooltip, which fades in.
    page.mouse.move(1, 1)
    page.wait_for_timeout(500)
    no_violations(page)
    keep("ask")


@pytest.mark.full
def test_the_player_stays_where_it_is_when_the_page_is_drawn_again(page: Page) -> None:
    page.evaluate("v = document.querySelector('video'); v.pause(); v.currentTime = 12")
    page.get_by_role("textbox", name="Question").fill("")
    page.get_by_role("button", name="Ask", exact=True).click()
    seen(page, "Write a question first")
    assert now(page) == pytest.approx(12, abs=0.5)
    page.get_by_role("button", name="▶ 0:40-0:48").first.click()
    page.wait_for_function("document.querySelector('video')?.currentTime >= 40")


# In test_page_words of the integration tests every page is tested for it.
@pytest.mark.full
def test_options_are_distinguished_by_letters(page: Page, address: str) -> None:
    ask(page, address, "What colour was the lighthouse?", "red\ngreen\nwhite")
    seen(page, "B. green")


def test_one_steps_through_a_trajectory_with_keyboard(page: Page, address: str, keep: Keep) -> None:
    settled(page)
    page.get_by_role("link", name="See every step").last.click()
    page.get_by_role("heading", name="Rounds").wait_for()
    done(page, "Round 1: searched")
    page.get_by_role("heading", name="Rounds").click()
    page.keyboard.press("ArrowLeft")
    # The sentence of the plan stands in the list before the press, too.
    page.wait_for_url("**round=0**")
    page.get_by_role("heading", name="The plan", exact=True).wait_for()
    settled(page)
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**round=1**")
    page.get_by_role("heading", name="Decision", exact=True).wait_for()
    settled(page)
    no_violations(page)
    keep("trajectory")


@pytest.mark.full
def test_a_bar_of_the_timeline_plays_what_the_round_saw(page: Page) -> None:
    page.locator(".timeline button.bar").first.focus()
    page.keyboard.press("Enter")
    settled(page)
    page.wait_for_function("document.querySelector('video')?.readyState >= 1")


def test_the_exported_page_opens_without_a_network(
    page: Page, context: BrowserContext, tmp_path: Path, shots: Path | None
) -> None:
    page.get_by_role("tab", name="Export").click()
    page.get_by_role("button", name="Make the page").click()
    with page.expect_download() as found:
        page.get_by_role("button", name="Download the page").click()
    path = tmp_path / "page.html"
    found.value.save_as(path)
    other = context.browser.new_context(offline=True).new_page()  # type: ignore[union-attr]
    other.goto(path.as_uri())
    other.get_by_role("heading", name="Evidence of each round").wait_for()
    if shots is not None:
        other.screenshot(path=str(shots / "export.png"), full_page=True)
    other.close()


def test_the_transcript_follows_the_player_and_is_walked_with_the_arrow_keys(
    page: Page, address: str, place: Home, keep: Keep
) -> None:
    name = video_ids(place)["lecture"]
    opened(page, f"{address}/video?video={name}&t=0:21", "Video")
    current = page.locator(".said[aria-current=true]")
    current.filter(has_text="I remember the earthquake well.").wait_for()
    assert now(page) == pytest.approx(21, abs=1)
    page.evaluate("v = document.querySelector('video'); v.pause(); v.currentTime = 3")
    current.filter(has_text="Ann: The harbour of Lisbon was rebuilt.").wait_for()
    current.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_function("document.querySelector('video').currentTime >= 20")
    assert now(page) < 30
    keep("transcript")


@pytest.mark.parametrize(
    ("name", "how"),
    [("film.ts", {"codec": "libx264"}), ("film.mkv", {"codec": "libx265"})],
    ids=["a container", "a codec"],
)
def test_what_a_browser_cannot_play_is_played_from_a_copy_and_goes_on(
    page: Page, address: str, place: Home, tmp_path: Path, name: str, how: dict[str, Any]
) -> None:
    lecture = video_ids(place)["lecture"]
    film = make_video(tmp_path / name, seconds=48.0, size=(64, 48), fps=5, audio="aac", **how)
    with of_file(place, lecture, film):
        opened(page, f"{address}/video?video={lecture}&t=0:28", "Video")
        seen(page, "Your browser cannot play this file as it is")
        assert now(page) <= 28
        assert page.evaluate("document.querySelector('video').videoWidth") == 64
        page.evaluate("v = document.querySelector('video'); v.currentTime = 29; v.play()")
        page.wait_for_function("document.querySelector('video')?.dataset.file.endsWith('-30000')")
        assert page.locator(".homer-player [role=alert]").is_hidden()


@pytest.mark.full
def test_in_a_narrow_window_the_player_stays_in_view(page: Page, address: str, place: Home) -> None:
    name = video_ids(place)["lecture"]
    page.set_viewport_size({"width": 390, "height": 844})
    opened(page, f"{address}/video?video={name}", "Video")
    page.locator(".said").last.wait_for()
    page.locator(".transcript").evaluate("one => one.scrollIntoView({block: 'end'})")
    page.wait_for_timeout(500)
    player = page.locator("video").bounding_box()
    lines = page.locator(".transcript").bounding_box()
    page.set_viewport_size({"width": 1280, "height": 900})
    assert player is not None
    assert lines is not None
    assert 0 <= player["y"] < player["y"] + player["height"] < lines["y"] + lines["height"] <= 845


@pytest.mark.full
def test_memory_follows_the_player(page: Page, address: str, place: Home, keep: Keep) -> None:
    name = video_ids(place)["lecture"]
    opened(page, f"{address}/video?video={name}&show=Memory&t=0:41", "Video")
    seen(page, "What is remembered of 0:41")
    seen(page, "lighthouse was painted green")
    assert now(page) == pytest.approx(41, abs=1)
    page.evaluate("v = document.querySelector('video'); v.pause(); v.currentTime = 22")
    seen(page, "What is remembered of 0:22")
    seen(page, "I remember the earthquake well.")
    assert now(page) == pytest.approx(22, abs=1)
    keep("memory")


def test_the_page_outlives_a_database(page: Page, address: str, place: Home, keep: Keep) -> None:
    opened(page, f"{address}/library", "Library")
    EmbeddedPostgres(place).stop(fast=False)
    page.reload()
    page.get_by_role("link", name="lecture").wait_for()


def test_nothing_is_loaded_from_elsewhere(page: Page, address: str, outside: list[str]) -> None:
    opened(page, address, "Ask")
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


def test_a_part_of_a_video_is_had_by_the_pages_link(page: Page, place: Home, address: str) -> None:
    name = video_ids(place)["lecture"]
    opened(page, f"{address}/video?video={name}", "Video")
    page.locator("video").wait_for()
    link = page.evaluate("document.querySelector('video').src")
    code, headers, body = status(link, Range="bytes=0-99")
    assert (code, len(body)) == (206, 100)
    assert headers["content-type"].startswith("video/")
    assert status(link.partition("?")[0])[0] == 403


@pytest.mark.parametrize(
    "path",
    [
        "/video/0000000000000000",
        "/video/..%2f..%2fetc%2fpasswd",
        "/video//etc/passwd",
        "/image/" + "0" * 64,
        "/image/..%2f..%2fhomer.toml",
    ],
)
def test_files_are_named_by_ids_only(address: str, path: str) -> None:
    code, _headers, body = status(address + path)
    assert b"root:" not in body
    # Paths that no route takes get the page itself, which then finds no such page.
    assert code in (400, 403, 404) or b"<!doctype html>" in body.lower()
