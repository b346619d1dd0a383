"""Signing in and out in a real browser; what a link to a film is worth without it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from auth.signing_in import set_password
from library.videos import all_titles
from services.supervisor import AppServer
from store.database import open_store
from store.home import Home
from tests.browser.axe import violations
from tests.browser.pages import opened, settled

if TYPE_CHECKING:
    from playwright.sync_api import Page

WORD = "correct horse"
# Who must sign in for what is in test_app_door; how it looks in a browser is here.
pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def address(place: Home) -> str:
    set_password(place, WORD)
    return AppServer(place, 0, "0.0.0.0").start()


def enter(page: Page, word: str) -> None:
    page.get_by_label("Password").fill(word)
    page.keyboard.press("Enter")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_sees_sign_in(page: Page, address: str, scheme: str, shots: Path | None) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.goto(f"{address}/library")
    page.locator("#password:focus").wait_for(timeout=10_000)
    enter(page, "wrong horse")
    page.get_by_role("alert").wait_for()
    if shots is not None:
        page.screenshot(path=str(shots / f"sign_in_{scheme}.png"))
    assert violations(page) == []
    page.emulate_media(color_scheme="light")


def test_who_signs_in_goes_on_to_where_they_wanted(
    page: Page, address: str, place: Home, keep: Callable[[str], None]
) -> None:
    with open_store(place) as store:
        (name,) = all_titles(store)
    page.goto(f"{address}/video?video={name}&show=Clips")
    enter(page, WORD)
    page.get_by_role("heading", name="Video", exact=True).wait_for()
    assert f"video={name}" in page.url
    settled(page)
    page.get_by_role("button", name="Sign out").wait_for()
    keep("signed_in")


def test_a_link_to_a_video_is_worth_nothing_without_signing_in(page: Page) -> None:
    page.locator("video").wait_for()
    link = page.evaluate("document.querySelector('video').src")
    assert httpx.get(link, trust_env=False).status_code == 401
    part = page.request.get(link, headers={"Range": "bytes=0-9"})
    assert (part.status, len(part.body())) == (206, 10)


def test_who_signs_out_sees_nothing_any_more(page: Page, address: str) -> None:
    other = page.context.new_page()
    frames: list[object] = []
    other.on("websocket", lambda stream: stream.on("framereceived", lambda it: frames.append(it)))
    opened(other, f"{address}/library", "Library")
    other.get_by_label("Search the titles").click()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_label("Password").wait_for()
    page.goto(f"{address}/library")
    page.get_by_label("Password").wait_for()
    # A window that stands open is told nothing more; it may have been cut off already.
    assert frames
    frames.clear()
    other.keyboard.type("lecture")
    other.keyboard.press("Enter")
    other.wait_for_timeout(3_000)
    assert frames == []
    other.close()
