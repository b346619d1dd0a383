"""The page Compare in a real browser: a question by every strategy, side by side; axe-core."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.pages import Keep, no_violations, opened, seen

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]


def test_a_question_is_asked_by_built_strategies(page: Page, address: str, keep: Keep) -> None:
    opened(page, f"{address}/compare", "Compare")
    page.get_by_label("Question").fill("What colour was the lighthouse painted?")
    page.get_by_role("button", name="Compare", exact=True).click()
    seen(page, " found by all")
    for name in ("homer", "plain-rag", "worldmm"):
        page.get_by_role("heading", name=name, exact=True).wait_for()
    keep("compare")
    no_violations(page)
    page.get_by_role("link", name="See every step").first.click()
    page.get_by_role("heading", name="Rounds").wait_for()
