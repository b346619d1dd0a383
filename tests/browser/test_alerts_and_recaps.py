"""The pages Alerts and Recaps in a real browser: what is there is read, and leads to its moment."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import update

from domain.built import Period
from flows.recap import write_recap
from services.supervisor import AppServer
from store.database import open_store
from store.embedded import EmbeddedPostgres
from store.home import Home
from store.tables.schema import KeyframeRow
from tests.browser.pages import no_violations, opened, seen, settled
from tests.support.full_video import fill
from tests.support.picture_cards import Card, jpeg

if TYPE_CHECKING:
    from playwright.sync_api import Page

Keep = Callable[[str], None]
ROOT = Path(__file__).parents[2]
VIDEO, OTHER = "a" * 16, "b" * 16
DAY = Period.at("day", datetime.fromtimestamp(1_700_000_000, UTC))
"""When the streams of full videos began."""

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """Two streams with an alert and an event each, of which one has a recap."""
    home = Home(tmp_path_factory.mktemp("pages") / "home").make()
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("HOMER_DATABASE_URL", raising=False)
        patch.setenv("HOMER_HOME", str(home.root))
        patch.setenv("PYTHONPATH", str(ROOT))
        with open_store(home) as store:
            fill(store, VIDEO, "kitchen")
            fill(store, OTHER, "hall")
            picture = store.blobs.put(jpeg(Card("red", "CUP", "circle")))
            with store.begin() as session:
                session.execute(update(KeyframeRow).values(blob=picture))
            write_recap(store, DAY, "kitchen")
        try:
            yield home
        finally:
            AppServer(home).stop()
            EmbeddedPostgres(home).stop(fast=False)


def test_alerts_are_listed_and_lead_to_the_moment(page: Page, address: str, keep: Keep) -> None:
    opened(page, f"{address}/alerts", "Alerts")
    events = page.get_by_role("link", name=re.compile(r": (kitchen|hall), \d"))
    events.first.wait_for()
    assert events.count() == 2
    no_violations(page)
    keep("alerts")
    page.get_by_role("link", name=re.compile(f"^cups-of-{VIDEO}$")).first.click()
    page.wait_for_url("**alert=cups-of-**")
    page.get_by_role("link", name="← All alerts").wait_for()
    page.get_by_role("link", name=re.compile(": hall,")).wait_for(state="hidden")
    page.get_by_role("link", name=re.compile(": kitchen,")).click()
    page.wait_for_url(f"**/video?video={VIDEO}&t=**")
    page.get_by_role("heading", name="Video", exact=True).wait_for()
    settled(page)
    seen(page, "kitchen")


def test_recap_says_who_wrote_it_and_opens_its_event(page: Page, address: str, keep: Keep) -> None:
    opened(page, f"{address}/recaps", "Recaps")
    seen(page, f"{DAY.name}: kitchen")
    seen(page, "Put together from the summaries of")
    citation = page.get_by_role("link", name=re.compile(r"^\d+:\d\d-\d+:\d\d$")).first
    citation.wait_for()
    assert page.get_by_text(re.compile(r", s\d+\]")).count() == 0
    no_violations(page)
    keep("recaps")
    with page.context.expect_page() as shown:
        citation.click()
    event = shown.value
    event.get_by_role("heading", name="Video", exact=True).wait_for()
    assert re.search(rf"/video\?video={VIDEO}&segment=\d+", event.url)
    event.get_by_role("button", name=re.compile(r"▶ \d+:\d\d-")).first.wait_for()
    event.close()
