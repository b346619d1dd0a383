"""Every page for everybody: readable in light and dark, worked by the keyboard alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import TYPE_CHECKING, Literal

import pytest

from tests.browser.pages import no_violations, opened, seen, settled

if TYPE_CHECKING:
    from playwright.sync_api import Page

Scheme = Literal["light", "dark"]
# Two pages are checked by axe-core in test_app_pages; every page is here.
pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]

LOOKS = """() => {
  const all = [];
  const walk = (root) => {
    for (const one of root.querySelectorAll('*')) {
      if (one.shadowRoot) walk(one.shadowRoot);
      if (one.matches('button, a[href], input, textarea, summary, video, [tabindex], [role=tab]'))
        all.push(one);
    }
  };
  walk(document);
  // Where one is may be shown by the frame around a field too.
  const look = (one) => {
    const told = [];
    for (let e = one; e && told.length < 50; e = e.parentElement) {
      const s = getComputedStyle(e);
      told.push(s.outlineStyle, s.outlineWidth, s.boxShadow, s.borderColor, s.backgroundColor);
    }
    return told.join(' ');
  };
  const shown = (e) => e.checkVisibility({ visibilityProperty: true })
    && e.getBoundingClientRect().width > 0;
  // A dialog keeps the keyboard until it is closed.
  const dialog = document.querySelector('[role=dialog]');
  const acts = (e) => !e.disabled && e.tabIndex >= 0 && shown(e)
    && (!dialog || dialog.contains(e))
    && e.matches('button, a[href], textarea, summary, video, input');
  let now = document.activeElement;
  while (now && now.shadowRoot && now.shadowRoot.activeElement) now = now.shadowRoot.activeElement;
  const seen = (window.looks = window.looks || new Map());
  const told = (e) => `${e.tagName} ${e.getAttribute('aria-label') || e.innerText || e.type}`
    .slice(0, 80);
  const at = now && now !== document.body && all.includes(now) ? now : null;
  const found = at && { name: told(at), acts: acts(at), seen: look(at) !== seen.get(at) };
  const reached = (window.reached = window.reached || new Set());
  if (at) reached.add(at);
  for (const one of all) if (one !== now && !seen.has(one)) seen.set(one, look(one));
  // The arrow keys go from chip to chip.
  const chip = (e) => {
    const group = e.closest('[data-testid=stButtonGroup]');
    return group && all.some((other) => group.contains(other) && reached.has(other));
  };
  const left = all.filter((e) => acts(e) && !reached.has(e) && !chip(e));
  return { at: found, left: left.map(told) };
}"""
"""Where the keyboard is, whether that can be seen, and the actions that it was not at yet."""


@pytest.fixture
def painted(page: Page) -> Iterator[Callable[[Scheme], None]]:
    """Has the browser prefer light pages or dark ones; its window has its size again afterwards."""
    yield lambda scheme: page.emulate_media(color_scheme=scheme)
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 1280, "height": 900})


PAGES = (
    *("Ask", "Trajectory", "Search", "Library", "Video", "People", "Skills", "Evaluations"),
    *("Health", "Alerts", "Recaps", "History", "Schedules", "Compare"),
)


@pytest.mark.parametrize(
    ("heading", "scheme", "width"), list(product(PAGES, ("light", "dark"), (1280, 390)))
)
def test_no_page_has_a_violation_of_accessibility(
    page: Page,
    address: str,
    ways: dict[str, str],
    painted: Callable[[Scheme], None],
    keep: Callable[[str], None],
    heading: str,
    scheme: Scheme,
    width: int,
) -> None:
    painted(scheme)
    page.set_viewport_size({"width": width, "height": 900})
    opened(page, f"{address}/{ways[heading]}", heading)
    page.evaluate(
        "document.querySelectorAll('details:not([open]) summary').forEach(one => one.click())"
    )
    page.wait_for_timeout(1_000)
    dark = page.evaluate(
        "getComputedStyle(document.querySelector('[data-testid=stApp]')).colorScheme"
    )
    assert scheme in dark
    no_violations(page)
    keep(f"{heading.lower()}_{scheme}")


# How the focus is drawn is the theme's, so two pages tell of the dark one.
@pytest.mark.parametrize(
    ("heading", "scheme"),
    [*((heading, "light") for heading in PAGES), ("Ask", "dark"), ("Video", "dark")],
)
def test_the_keyboard_reaches_every_action_and_one_sees_where_it_is(
    page: Page,
    address: str,
    ways: dict[str, str],
    painted: Callable[[Scheme], None],
    heading: str,
    scheme: Scheme,
) -> None:
    painted(scheme)
    opened(page, f"{address}/{ways[heading]}", heading)
    page.wait_for_timeout(1_000)
    # What the mouse is over looks like what the keyboard is at.
    page.mouse.move(1, 1)
    page.wait_for_timeout(500)
    unseen, found = [], page.evaluate(LOOKS)
    for _ in range(150):
        page.keyboard.press("Tab")
        page.wait_for_timeout(150)
        found = page.evaluate(LOOKS)
        if found["at"] and found["at"]["acts"] and not found["at"]["seen"]:
            unseen.append(found["at"]["name"])
        if not found["left"]:
            break
    assert (found["left"], unseen) == ([], [])


def test_keys_do_not_step_while_one_types(page: Page, address: str, ways: dict[str, str]) -> None:
    opened(page, f"{address}/{ways['Trajectory']}", "Trajectory")
    page.get_by_text("Rerun from this step with changes").click()
    for field in (page.get_by_label("Query"), page.get_by_role("textbox", name="Plan")):
        field.click()
        for key in ("ArrowLeft", "ArrowRight", "ArrowLeft", "Home"):
            page.keyboard.press(key)
        page.wait_for_timeout(1_500)
        assert "round=1" in page.url
        seen(page, "Round 1: searched")
    page.get_by_label("Query").fill("a harbour")
    page.keyboard.press("ArrowLeft")
    page.keyboard.type("o")
    assert page.get_by_label("Query").input_value() == "a harbouor"
    page.keyboard.press("Escape")
    page.get_by_role("heading", name="Rounds").click()
    page.keyboard.press("ArrowLeft")
    page.wait_for_url("**round=0**")
    settled(page)
