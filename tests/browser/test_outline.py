"""The outline of a video in a real browser: zoomed into, played, and its graph drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from cli.main import app
from store.home import Home
from tests.browser.pages import Keep, no_violations, opened, settled, video_ids

if TYPE_CHECKING:
    from playwright.sync_api import Page

# What the outline shows is in test_outline_zoom; how it looks and plays is here.
pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]


def test_a_node_is_zoomed_into_played_and_drawn(
    page: Page, address: str, place: Home, outside: list[str], keep: Keep
) -> None:
    built = CliRunner().invoke(app, ["build", "lecture", "--memory", "memdreamer"])
    assert built.exit_code == 0, built.output
    opened(page, f"{address}/video?video={video_ids(place)['lecture']}", "Video")
    for noun in ("super event", "macro event", "event"):
        page.locator("[class*=st-key-zoom_] button").last.click()
        page.locator(".st-key-outline_here").get_by_text(noun, exact=True).wait_for()
        settled(page)
    page.evaluate("document.querySelector('video').currentTime = 10")
    page.locator(".st-key-outline_here button").click()
    page.wait_for_function("document.querySelector('video').currentTime >= 40")
    page.locator(".st-key-outline_path button").last.click()
    page.locator(".st-key-outline_here").get_by_text("macro event", exact=True).wait_for()
    settled(page)
    page.get_by_text("Draw its graph").click()
    graph = page.locator(".st-key-outline_graph [data-testid=stGraphVizChart] svg")
    graph.wait_for()
    # The transcript has the word, too.
    graph.get_by_text("lighthouse").first.wait_for()
    settled(page)
    assert [url for url in outside if not url.startswith((address, "data:", "blob:"))] == []
    page.mouse.move(1, 1)
    page.wait_for_timeout(500)
    keep("outline")
    no_violations(page)
