"""Words that try to be links, pictures and scripts, in a real browser: they are only words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from library.memory import events
from services.supervisor import AppServer
from store.database import open_store
from store.embedded import EmbeddedPostgres
from store.home import Home
from tests.browser.pages import opened
from tests.support.asking import PARTY
from tests.support.markup_video import plant
from tests.support.media import make_video

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROOT = Path(__file__).parents[2]
UNFOLD = "document.querySelectorAll('details:not([open]) summary').forEach(one => one.click())"
EVIDENCE = """() => {
  const found = [];
  const walk = (root) => {
    for (const one of root.querySelectorAll('*')) {
      if (one.shadowRoot) walk(one.shadowRoot);
      for (const name of ['href', 'src', 'action', 'srcset']) {
        const told = one.getAttribute(name) || '';
        if (/evil|javascript:/.test(decodeURIComponent(told))) found.push(`${one.tagName} ${told}`);
      }
      for (const { name } of one.attributes) if (name.startsWith('on')) found.push(name);
    }
  };
  walk(document);
  for (const one of document.querySelectorAll('strong, b, code, .katex, [role=img]'))
    if (['bold', 'code', 'x', 'home'].includes(one.innerText.trim())) found.push(one.outerHTML);
  const words = document.body.innerText.replaceAll('\\u2060', '');
  if (!words.includes(':material/home:')) found.push('home');
  return found;
}"""

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A data directory whose only video is full of bait; what was asked about it is in a file."""
    folder = tmp_path_factory.mktemp("bait")
    home = Home(folder / "home").make()
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("HOMER_DATABASE_URL", raising=False)
        patch.setenv("HOMER_HOME", str(home.root))
        patch.setenv("PYTHONPATH", str(ROOT))
        home.config.write_text('[profiles.scripted]\nbase = "local"\n')
        recording = make_video(folder / "a minute.mp4", seconds=60.0, size=(64, 48), fps=5)
        with open_store(home) as store:
            (folder / "asked").write_text(plant(store, str(recording)))
        try:
            yield home
        finally:
            AppServer(home).stop()
            EmbeddedPostgres(home).stop(fast=False)


@pytest.fixture(scope="module")
def ways(place: Home) -> dict[str, str]:
    """The address of every page, in each of its views, by a name."""
    asked = (place.root.parent / "asked").read_text()
    with open_store(place) as store:
        event = events(store, PARTY).items[0].number
    return {
        "ask": f"?trajectory={asked}",
        "trajectories": "trajectory",
        "trajectory": f"trajectory?trajectory={asked}&round=1&with_={asked}",
        "library": f"library?delete={PARTY}",
        "event": f"video?video={PARTY}&segment={event}",
        "clips": f"video?video={PARTY}&show=Clips",
        "people": f"people?video={PARTY}&person=1",
        "health": "health",
    }


@pytest.mark.full
@pytest.mark.parametrize(
    "name", ["ask", "trajectories", "trajectory", "library", "event", "clips", "people", "health"]
)
def test_nothing_of_it_is_more_than_words(
    page: Page,
    address: str,
    ways: dict[str, str],
    name: str,
    outside: list[str],
    keep: Callable[[str], None],
) -> None:
    opened(page, f"{address}/{ways[name]}", ways[name].partition("?")[0].capitalize() or "Ask")
    page.evaluate(UNFOLD)
    # Behind an open dialog nothing can be pointed at.
    dialog = page.get_by_role("dialog")
    within = dialog if dialog.count() else page.locator("body")
    for button in within.get_by_role("button").filter(visible=True).all()[:3]:
        button.hover()
    page.wait_for_function("document.body.innerText.replaceAll('\\u2060', '').includes('www.evil')")
    keep(f"planted_{name}")
    assert page.evaluate(EVIDENCE) == []
    assert [url for url in outside if "evil" in url.partition("?")[0]] == []
