"""Every page on a phone, 390 CSS pixels wide, in each language: nothing lies beside the screen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from domain.words import reader, translate
from tests.browser.conftest import WAIT_MS
from tests.browser.pages import opened
from ui.language import readers
from ui.navigation import PAGE_NAMES, TITLES

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]

WIDTH, HEIGHT = 390, 844
BESIDE = """(width) => {
  const main = document.querySelector('[data-testid=stMain]');
  // What scrolls by itself may hold more than is seen: a table, a strip of pictures.
  const scrolls = (e) => e && e !== main && (
    (['auto', 'scroll'].includes(getComputedStyle(e).overflowX) && e.scrollWidth > e.clientWidth)
    || scrolls(e.parentElement || (e.getRootNode().host)));
  const found = [];
  const walk = (root) => {
    for (const one of root.querySelectorAll('*')) {
      if (one.shadowRoot) walk(one.shadowRoot);
      if (!one.matches('button, a[href], input, textarea, summary, video, label, [role=tab]'))
        continue;
      const box = one.getBoundingClientRect();
      if (!box.width || !one.checkVisibility({ visibilityProperty: true, opacityProperty: true }))
        continue;
      if ((box.left < -1 || box.right > width + 1) && !scrolls(one.parentElement))
        found.push(`${one.tagName} ${one.ariaLabel || one.innerText}`.slice(0, 80));
    }
  };
  walk(main);
  return { found, page: document.documentElement.scrollWidth, main: main.scrollWidth };
}"""
"""The controls beside the screen, and how wide the page is."""


@pytest.fixture(scope="module", params=sorted(readers()))
def phone(request: pytest.FixtureRequest, context: BrowserContext) -> Iterator[Page]:
    assert context.browser is not None
    made = context.browser.new_context(
        viewport={"width": WIDTH, "height": HEIGHT}, locale=request.param, has_touch=True
    )
    made.set_default_timeout(WAIT_MS)
    before = reader.set(readers()[request.param])
    yield made.new_page()
    reader.reset(before)
    made.close()


VIEWS = [
    *((name, "") for name in PAGE_NAMES),
    *(("video", f"&show={shown}") for shown in ("Clips", "Memory", "Search")),
    ("people", "&of=All+videos"),
]
"""Pages, and what is added to their addresses."""


@pytest.mark.parametrize(("name", "more"), VIEWS)
def test_a_page_fits_a_phone(
    phone: Page, address: str, ways: dict[str, str], shots: Path | None, name: str, more: str
) -> None:
    opened(phone, f"{address}/{ways[TITLES[name]]}{more}", translate(TITLES[name]))
    phone.wait_for_timeout(700)
    fits(phone)
    assert phone.evaluate("document.documentElement.lang") == reader.get().code
    phone.evaluate(
        "document.querySelectorAll('details:not([open]) summary').forEach(e => e.click())"
    )
    phone.wait_for_timeout(700)
    if shots is not None:
        path = shots / f"{name}{more[-5:]}_{reader.get().code}_390.png"
        tall = int(phone.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight"))
        phone.set_viewport_size({"width": WIDTH, "height": max(HEIGHT, min(tall + 20, 5000))})
        phone.screenshot(path=str(path))
        phone.set_viewport_size({"width": WIDTH, "height": HEIGHT})
    fits(phone)


def test_the_choice_of_a_language_is_in_the_menu(phone: Page, address: str) -> None:
    opened(phone, f"{address}/history", translate("History"))
    phone.get_by_test_id("stExpandSidebarButton").click()
    menu = phone.get_by_test_id("stSidebar")
    menu.get_by_role("link", name=translate("Library")).wait_for()
    menu.get_by_role("combobox").click()
    other = "English" if reader.get().code != "en" else "Deutsch"
    phone.get_by_role("option", name=other).click()
    heading = {"English": "History", "Deutsch": "Verlauf"}[other]
    phone.get_by_role("heading", name=heading, exact=True).first.wait_for()


def fits(page: Page) -> None:
    """No page scrolls sideways, and nothing to press or to fill in lies beside the screen."""
    found: dict[str, Any] = page.evaluate(BESIDE, WIDTH)
    assert found["found"] == []
    assert found["page"] <= WIDTH
    assert found["main"] <= WIDTH
