"""What was learned and measured, in a real browser: odd words stay words; axe-core."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from skills.library import store_skills
from store.database import open_store
from store.home import Home
from tests.browser.pages import Keep, no_violations, opened, settled, video_ids
from tests.browser.test_planted_words import EVIDENCE, UNFOLD
from tests.support.app_pages import LONG, RTL
from tests.support.many_answers import fill_answers
from tests.support.many_runs import fill_run
from tests.support.markup_video import BAIT
from tests.support.skills import a_skill

if TYPE_CHECKING:
    from playwright.sync_api import Page

# What these pages do is in test_skills_page and test_evaluations_page; how they look is here.
pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]
ODD = (BAIT, LONG[:250], RTL)

BEGINS = "begin => document.body.innerText.replaceAll('\\u2060', '').includes(begin)"


def odd(text: str) -> dict[str, Any]:
    """A question of which everything is in these words."""
    return {"question": text, "answer": text, "types": [text]}


@pytest.fixture(scope="module", autouse=True)
def learned(place: Home) -> None:
    """Answers of some weeks, and skills that they were given."""
    with open_store(place) as store:
        video = video_ids(place)["lecture"]
        fill_answers(store, 260, skills=3, video=video)
        fill_run(store, "first", 40, video=video)
        fill_run(store, "second", 40, video=video, shift=1, first=80)
        for n, text in enumerate(ODD):
            fill_run(store, f"odd-{n}", 4, video=video, first=160 + 8 * n, **odd(text))
        store_skills(store, [a_skill("advice-0", instructions=("Look for both first.",))])


@pytest.mark.parametrize("text", ODD)
def test_any_words_of_a_skill_stay_words_and_stay_inside(
    page: Page, address: str, place: Home, keep: Keep, text: str
) -> None:
    from store.queries import skills as stored

    name = f"odd-{len(text)}"
    with open_store(place) as store, store.begin() as session:
        stored.add_version(session, a_skill(name, description=text, instructions=(text,)))
    opened(page, f"{address}/skills?skill={name}", "Skills")
    page.wait_for_function(BEGINS, arg=text[:40])
    inside(page)
    keep(name)


def inside(page: Page) -> None:
    """Nothing that was said became a part of the page, or pushed others out of it."""
    page.evaluate(UNFOLD)
    if "evil" in page.inner_text("body"):
        assert page.evaluate(EVIDENCE) == []
    assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= 1280


@pytest.mark.parametrize("number", range(len(ODD)))
def test_any_words_of_an_evaluation_stay_words_and_stay_inside(
    page: Page, address: str, keep: Keep, number: int
) -> None:
    opened(page, f"{address}/evaluations?run=odd-{number}", "Evaluations")
    page.get_by_role("heading", name="Export").wait_for()
    settled(page)
    inside(page)
    keep(f"evaluation_odd_{number}")


PATHS = (
    "skills",
    "skills?skill=advice-0",
    "evaluations",
    "evaluations?run=first",
    "evaluations?run=first&with_=second",
)


@pytest.mark.parametrize("path", PATHS)
def test_no_page_has_a_serious_breach_of_accessibility(page: Page, address: str, path: str) -> None:
    opened(page, f"{address}/{path}", path.partition("?")[0].capitalize())
    no_violations(page)
