"""What was learned and measured, in a real browser: verdicts, skills, bans; axe-core."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from skills.library import find_skill, store_skills
from store.database import open_store
from store.home import Home
from tests.browser.pages import Keep, ask, done, no_violations, opened, seen, settled, video_ids
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


def test_answer_is_judged_and_verdict_is_there_again(page: Page, address: str, keep: Keep) -> None:
    ask(page, address, "What colour was the lighthouse painted?")
    seen(page, "Is this answer right?")
    page.get_by_role("button", name="Right", exact=False).first.press("Enter")
    done(page, "Judged right.")
    page.reload()
    done(page, "Judged right.")
    keep("judged")
    page.get_by_role("link", name="See every step").last.click()
    page.get_by_role("heading", name="Rounds").wait_for()
    done(page, "Judged right.")
    page.get_by_role("button", name="Withdraw the verdict").click()
    seen(page, "Is this answer right?")


def test_skill_is_banned_and_used_again(page: Page, address: str, place: Home, keep: Keep) -> None:
    opened(page, f"{address}/skills", "Skills")
    seen(page, "version 2, topic mode, positive, used for 173 questions, in use")
    keep("skills")
    page.get_by_role("link", name="advice-0").click()
    page.wait_for_url("**skill=advice-0**")
    page.get_by_role("heading", name="Use and success").wait_for()
    settled(page)
    page.locator("[data-testid=stVegaLiteChart] canvas, [data-testid=stVegaLiteChart] svg").nth(
        1
    ).wait_for()
    keep("skill")
    page.get_by_role("button", name="Ban it").click()
    done(page, "This skill is banned")
    page.get_by_role("button", name="Unban it").click()
    seen(page, "questions that match its description")
    with open_store(place) as store:
        assert not find_skill(store, "advice-0").banned
    page.get_by_role("link", name="Who opens door 258?").first.click()
    page.wait_for_url("**/trajectory?trajectory=**")
    # The way back leads back.
    page.get_by_role("link", name="← History").click()
    page.wait_for_url("**/history")
    page.go_back()
    page.wait_for_url("**/trajectory?trajectory=**")


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


def choose(page: Page, label: str, option: str) -> None:
    settled(page)
    box, wanted = page.get_by_role("combobox", name=label), page.get_by_role("option", name=option)
    box.focus()
    # A list that was opened while the page was still being drawn is shut again.
    for _ in range(10):
        if wanted.is_visible():
            break
        box.press("ArrowDown")
        page.wait_for_timeout(1_000)
    box.type(option)
    box.press("Enter")


def test_a_run_is_opened_filtered_and_compared(page: Page, address: str, keep: Keep) -> None:
    opened(page, f"{address}/evaluations", "Evaluations")
    keep("evaluations")
    page.get_by_role("link", name="first", exact=True).click()
    page.wait_for_url("**run=first**")
    page.get_by_role("heading", name="Export").wait_for()
    settled(page)
    page.locator("[data-testid=stVegaLiteChart] canvas, [data-testid=stVegaLiteChart] svg").nth(
        1
    ).wait_for()
    keep("evaluation")
    choose(page, "Answer", "wrong")
    page.wait_for_url("**answer=wrong**")
    settled(page)
    choose(page, "The other run", "second")
    page.wait_for_url("**with_=second**")
    seen(page, "right only in second")
    keep("evaluations_compared")
    page.get_by_role("button", name="Make the files").click()
    with page.expect_download() as found:
        page.get_by_role("button", name="Download the page").click()
    assert found.value.suggested_filename == "first.html"
    page.get_by_role("link", name="Compare both searches").first.click()
    page.wait_for_url("**/trajectory?**with_=**")
    page.get_by_role("tab", name="Compare").click()
    seen(page, "Evidence of only one of them")


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
