"""Screenshots of every page over the library of ``HOMER_HOME``: two widths, light and dark.

``make screenshots`` runs it after the demo, so that the pages have real content.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from library.rounds import forks_among
from library.videos import all_titles
from services.supervisor import AppServer
from store.database import Store, open_store
from store.home import Home
from store.queries.trajectories import list_trajectories
from tests.browser.pages import settled
from ui.navigation import PAGE_NAMES

if TYPE_CHECKING:
    from playwright.sync_api import Page

WIDTHS = {1400: 900, 390: 844}
"""Widths in CSS pixels, with the height of the window at each."""
MAX_HEIGHT = 4000
"""CSS pixels; a longer page is cut."""
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
OF_ONE = ("video", "people", "trajectory")
"""Pages of one video or question, which are taken for several."""
MAX_OF_KIND = 3
"""Videos and answers shown."""
TIMEOUT_MS = 60_000


def addresses(store: Store) -> Iterator[tuple[str, str]]:
    """Yield a name and an address for each page, over the first videos and the newest answers."""
    titles = all_titles(store)
    with store.begin() as session:
        answered = [row for row in list_trajectories(session) if row.answer is not None]
    yield PAGE_NAMES[0], ""
    yield from ((page, page) for page in PAGE_NAMES[1:] if page not in OF_ONE)
    yield "search-results", "search?q=people"
    for index, video in enumerate(list(titles)[:MAX_OF_KIND]):
        yield f"video-{index}", f"video?video={video}"
        yield f"people-{index}", f"people?video={video}"
    for index, row in enumerate(answered[:MAX_OF_KIND]):
        yield f"ask-answer-{index}", f"?trajectory={row.id}"
        yield f"trajectory-{index}", f"trajectory?trajectory={row.id}"
    for fork in list(forks_among(store, [row.id for row in answered]))[:1]:
        yield "trajectory-fork", f"trajectory?trajectory={fork}"


def take(page: Page, url: str, width: int, path: Path) -> None:
    page.set_viewport_size({"width": width, "height": WIDTHS[width]})
    page.goto(url)
    page.locator("[data-testid=stMain] h1").first.wait_for()
    settled(page)
    page.wait_for_timeout(1_500)
    page.screenshot(path=str(path.with_suffix(".top.png")))
    height = page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight")
    tall = min(max(WIDTHS[width], int(height)), MAX_HEIGHT)
    page.set_viewport_size({"width": width, "height": tall})
    page.wait_for_timeout(500)
    page.screenshot(path=str(path))


def main() -> None:
    """Start the app over ``HOMER_HOME`` and write the screenshots into a folder."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description="Screenshots of every page.")
    parser.add_argument("out", type=Path, help="the folder that gets them")
    parser.add_argument("--only", default="", help="only pages whose name begins with this")
    parser.add_argument("--width", type=int, choices=WIDTHS, nargs="*", default=list(WIDTHS))
    parser.add_argument("--scheme", choices=SCHEMES, nargs="*", default=SCHEMES)
    options = parser.parse_args()
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("no chromium: apt install chromium")
    options.out.mkdir(parents=True, exist_ok=True)
    home = Home.default()
    with open_store(home) as store:
        every = dict(addresses(store))
    pages = {name: url for name, url in every.items() if name.startswith(options.only)}
    server = AppServer(home, 0)
    was_running = server.address() is not None
    address = server.start()
    urls = {name: f"{address}/{url}" for name, url in pages.items()}
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            # Take every page in each look: a colour scheme and a width.
            for scheme, width in product(options.scheme, options.width):
                with browser.new_context(color_scheme=scheme) as context:
                    context.set_default_timeout(TIMEOUT_MS)
                    page = context.new_page()
                    for name, url in urls.items():
                        take(page, url, width, options.out / f"{name}-{width}-{scheme}.png")
            browser.close()
    finally:
        if not was_running:
            server.stop()
    print(f"{len(list(options.out.glob('*.png')))} screenshots are in {options.out}")


if __name__ == "__main__":
    main()
