"""A stream in a real browser: what is kept of it is followed, asked about and played meanwhile."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import pytest

from perception.source import probe
from store.home import Home
from tests.browser.pages import ask, no_violations, opened, seen, settled, video_ids
from tests.support.picture_cards import Card, make_slides

if TYPE_CHECKING:
    from playwright.sync_api import Page

Keep = Callable[[str], None]
CARDS = [
    Card("red", "HARBOUR", "circle"),
    Card("green", "ORCHARD", "square"),
    Card("blue", "WINDMILL", "triangle"),
    Card("yellow", "LANTERN", "circle"),
]
CARD_S, CLIP_S = 12, 6
# Both clips of the first card and the one of the second are in memory before the rest comes.
FIRST = 0.5

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]


class Stream:
    """A FIFO that ``homer watch`` reads."""

    def __init__(self, fifo: Path, data: bytes) -> None:
        os.mkfifo(fifo)
        half = int(len(data) * FIRST)
        self._rest = data[half:]
        options = ["--title", "camera", "--direct", "--away", "0", "--record"]
        memory = ["--memory", "eventmem,vam"]
        command = [sys.executable, "-m", "cli", "watch", str(fifo), *options, *memory]
        self.watching = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        self._file: BinaryIO | None = fifo.open("wb")
        self._file.write(data[:half])
        self._file.flush()

    def go_on(self) -> None:
        if self._file is not None:
            self._file.write(self._rest)
            self._file.flush()

    def end(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        self.watching.wait(120)


@pytest.fixture(scope="module")
def stream(place: Home, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stream]:
    """A camera of 48 seconds whose second half is still to come, watched and recorded."""
    folder = tmp_path_factory.mktemp("camera")
    place.config.write_text(
        f"[profiles.local.settings.watch]\nclip_ms = {CLIP_S}000\nsample_fps = 2.0\nkeyframes = 2\n"
    )
    made = Stream(folder / "fifo", make_slides(folder / "cards.ts", CARDS, CARD_S).read_bytes())
    yield made
    made.end()


def watched(page: Page, address: str, place: Home) -> str:
    """The page Library leads to the live view once the stream is there."""
    opened(page, f"{address}/library", "Library")
    page.get_by_role("link", name="See it live").click()
    page.wait_for_url("**show=Live**")
    seen(page, "Being watched now.")
    return video_ids(place)["camera"]


def shown_through_s(page: Page) -> int:
    """The second up to which the page says that the stream is in memory."""
    found = re.search(r"In memory up to (\d+):(\d\d)", page.inner_text("body"))
    assert found
    return 60 * int(found[1]) + int(found[2])


def test_what_is_kept_is_shown_and_followed_while_a_stream_is_watched(
    page: Page, address: str, place: Home, stream: Stream, keep: Keep
) -> None:
    watched(page, address, place)
    page.get_by_text("Short-term memory").filter(visible=True).first.wait_for()
    page.locator(".homer-strip img").first.wait_for()
    seen(page, "Up to 1 h old")
    before = shown_through_s(page)
    assert 0 < before < 30
    assert page.get_by_text(re.compile("Event 3")).count() == 0
    keep("live_first_half")
    stream.go_on()
    page.get_by_text(re.compile(r"Event 3, \d:\d\d to \d:\d\d: \d+ of \d+ frames")).wait_for()
    assert shown_through_s(page) > before
    page.wait_for_function(
        "[...document.querySelectorAll('.homer-strip img')].filter(i => i.naturalWidth).length > 10"
    )
    no_violations(page)
    keep("live_second_half")
    assert stream.watching.poll() is None


def test_a_stream_is_asked_and_played_meanwhile(page: Page, stream: Stream, keep: Keep) -> None:
    page.get_by_role("textbox", name="Question").fill("Where is the ORCHARD?")
    page.get_by_role("button", name="Ask", exact=True).click()
    page.get_by_text("See every step").wait_for()
    source = page.get_by_role("button", name=re.compile("▶")).filter(visible=True)
    source.first.wait_for()
    settled(page)
    seen(page, "Being watched now.")
    assert stream.watching.poll() is None
    source.first.click()
    page.wait_for_function("document.querySelector('video')?.src.includes('/recording/')")
    keep("live_answer")


def test_a_cited_moment_is_saved_as_a_file(
    page: Page, address: str, stream: Stream, keep: Keep, tmp_path: Path
) -> None:
    stream.end()
    page.get_by_text("Not being watched now.").filter(visible=True).first.wait_for()
    ask(page, address, "Where is the ORCHARD?")
    button = page.get_by_role("button", name="Save this moment").first
    button.wait_for()
    keep("live_save")
    with page.expect_download() as download:
        button.click()
    assert re.fullmatch(r"camera \d+\.\d\d-\d+\.\d\d\.mp4", download.value.suggested_filename)
    file = tmp_path / "moment.mp4"
    download.value.save_as(file)
    assert 500 < probe(file).duration_ms < 15_000
