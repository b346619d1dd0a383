"""What people come for, from the first page in a real browser, each in a few presses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from cli.main import app
from store.home import Home
from tests.browser.pages import done, no_violations, opened, seen, settled, video_ids

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

# Asking and stepping are in test_app_pages; in how few presses is here.
pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]

QUESTION = "What colour was the lighthouse painted?"


@dataclass
class Presses:
    """Presses things on the page, and counts how often; typing is not counted."""

    count: int = 0

    def on(self, place: Locator) -> None:
        place.click()
        self.count += 1


@pytest.fixture
def presses() -> Presses:
    return Presses()


@pytest.fixture(params=[(1400, 900), (390, 844)], ids=["wide", "narrow"])
def window(page: Page, request: pytest.FixtureRequest) -> Iterator[tuple[int, int]]:
    width, height = request.param
    page.set_viewport_size({"width": width, "height": height})
    yield width, height
    page.set_viewport_size({"width": 1280, "height": 900})


def test_a_question_is_asked_and_its_cited_moment_played_in_three_presses(
    page: Page, address: str, presses: Presses, window: tuple[int, int]
) -> None:
    opened(page, address, "Ask")
    page.get_by_role("textbox", name="Question").fill(QUESTION)
    presses.on(page.get_by_role("button", name="Ask", exact=True))
    done(page, "Confidence ")
    answer = page.locator(".st-key-answer").bounding_box()
    assert answer is not None
    # Nobody has to scroll to read it.
    assert answer["y"] + answer["height"] < window[1]
    presses.on(page.get_by_role("button", name="▶ 0:40-0:48").first)
    page.wait_for_function("document.querySelector('video')?.currentTime >= 40")
    player = page.locator("video").bounding_box()
    assert player is not None
    assert 0 <= player["y"] < window[1]
    assert presses.count <= 3
    # What the mouse rests on shows its tooltip, which fades in.
    page.mouse.move(1, 1)
    page.wait_for_timeout(500)
    no_violations(page)


def test_when_a_word_was_said_is_found_and_played_in_three_presses(
    page: Page, address: str, presses: Presses, window: tuple[int, int]
) -> None:
    opened(page, address, "Ask")
    presses.on(page.get_by_role("link", name="lecture"))
    field = page.get_by_role("textbox", name="Find in this video")
    field.fill("harbours")
    field.press("Enter")
    done(page, "1 line with these words")
    assert page.locator("mark").all_inner_texts() == ["harbour"]
    page.evaluate("document.querySelector('video').currentTime = 50")
    presses.on(page.locator(".said", has_text="Ann: The harbour"))
    page.wait_for_function("document.querySelector('video').currentTime < 10")
    assert page.evaluate("document.querySelector('video').currentTime") >= 2
    assert not page.evaluate("document.querySelector('video').paused")
    player = page.locator("video").bounding_box()
    assert player is not None
    assert 0 <= player["y"] < window[1]
    assert presses.count <= 3
    page.mouse.move(1, 1)
    page.wait_for_timeout(500)
    no_violations(page)


def test_what_was_asked_before_is_a_press_away(page: Page, address: str, presses: Presses) -> None:
    opened(page, address, "Ask")
    seen(page, "Recent questions")
    presses.on(page.get_by_role("link", name=QUESTION).first)
    done(page, "Confidence ")
    settled(page)


def test_a_step_is_rerun_in_five_presses(page: Page, address: str, presses: Presses) -> None:
    opened(page, address, "Ask")
    presses.on(page.get_by_role("link", name=QUESTION).first)
    done(page, "Confidence ")
    presses.on(page.get_by_role("link", name="See every step").first)
    page.get_by_role("heading", name="Rounds").wait_for()
    settled(page)
    presses.on(page.get_by_text("Rerun from this step with changes"))
    page.get_by_label("Query").fill("the harbour of Lisbon and its earthquake")
    presses.on(page.get_by_role("button", name="Fork", exact=True))
    presses.on(page.get_by_role("link", name="Compare it with this one"))
    page.wait_for_url("**with_=**")
    seen(page, "The other search")
    seen(page, "the harbour of Lisbon and its earthquake")
    assert presses.count <= 5


def test_a_face_is_named_in_three_presses(page: Page, address: str, presses: Presses) -> None:
    opened(page, address, "Ask")
    presses.on(page.get_by_role("link", name="People"))
    field = page.locator(".st-key-faces").get_by_role("textbox").first
    presses.on(field)
    field.fill("Grace Hopper")
    field.press("Enter")
    done(page, "is now called Grace Hopper.")
    assert presses.count <= 3
    # Streamlit's own toast has no name that axe accepts; it goes after seconds.
    page.locator("[data-testid=stToast]").first.wait_for(state="hidden")
    no_violations(page)


def test_two_people_are_merged_in_four_presses(page: Page, address: str, presses: Presses) -> None:
    opened(page, address, "Ask")
    presses.on(page.get_by_role("link", name="People"))
    boxes = page.locator(".st-key-faces [data-testid=stCheckbox] label")
    for index in (0, 1):
        presses.on(boxes.nth(index))
        settled(page)
    presses.on(page.get_by_role("button", name="Merge 2 people"))
    done(page, "into Grace Hopper.")
    assert presses.count <= 4
    # And it is undone beside the words that say so.
    page.get_by_role("button", name="Undo", disabled=False).first.click()
    done(page, "Undone:")


def test_a_video_is_deleted_in_four_presses(
    page: Page, address: str, place: Home, presses: Presses
) -> None:
    captions = place.root.parent / "spare.jsonl"
    captions.write_text('{"start": 1, "end": 4, "text": "To be thrown away."}\n')
    assert CliRunner().invoke(app, ["import", "spare", "--captions", str(captions)]).exit_code == 0
    opened(page, address, "Ask")
    presses.on(page.get_by_role("link", name="Library"))
    card = page.locator("[class*=st-key-video_]", has_text="spare")
    presses.on(card.get_by_role("button", name="More"))
    presses.on(page.get_by_role("button", name="Delete", exact=True))
    seen(page, "This deletes 1 clip")
    no_violations(page)
    presses.on(page.get_by_role("button", name="Yes, delete it"))
    seen(page, "spare is deleted")
    assert presses.count <= 4
    assert "spare" not in video_ids(place)
