"""Opening a page of the app in a browser, and waiting until it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page


def opened(page: Page, url: str, heading: str) -> None:
    """Opens a page by its address."""
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
