"""Opening a page of the app in a browser, and waiting until it stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from library.videos import all_titles
from store.database import open_store
from store.home import Home
from tests.browser.axe import violations

if TYPE_CHECKING:
    from playwright.sync_api import Page

Keep = Callable[[str], None]
"""Keeps a picture under a name."""


def opened(page: Page, url: str, heading: str) -> None:
    page.goto(url)
    page.get_by_role("heading", name=heading, exact=True).first.wait_for()
    settled(page)


def settled(page: Page) -> None:
    """Waits until the page is drawn."""
    page.wait_for_function(
        "document.querySelector('[data-testid=stApp]')?.dataset.testScriptState === 'notRunning'"
    )


def seen(page: Page, text: str) -> None:
    """Waits until the text can be seen; folded parts hold it too."""
    page.get_by_text(text).filter(visible=True).first.wait_for()


def done(page: Page, text: str) -> None:
    """Waits for what came of a press, and for all below it: before, a press can miss."""
    seen(page, text)
    settled(page)


def ask(page: Page, address: str, question: str, options: str = "") -> None:
    opened(page, address, "Ask")
    page.get_by_role("textbox", name="Question").fill(question)
    if options:
        page.get_by_text("Advanced options").click()
        page.get_by_label("Choices, one per line").fill(options)
    page.get_by_role("button", name="Ask", exact=True).click()


def video_ids(place: Home) -> dict[str, str]:
    with open_store(place) as store:
        return {title: name for name, title in all_titles(store).items()}


def no_violations(page: Page) -> None:
    """No violation of accessibility, as axe-core finds them."""
    # Streamlit sets the words of buttons a moment after the buttons.
    page.wait_for_function(
        "[...document.querySelectorAll('button[kind]')].every(b => b.textContent || b.ariaLabel)"
    )
    found = violations(page)
    assert found == [], found
