"""Pages that are handed on as files, in a real browser: words in them do nothing.

Two layers, each tested without the other: every word is escaped, and the page's own policy lets
neither scripts nor requests through, were one not.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from domain.evaluation import EvaluationRun, QuestionPart
from domain.evaluation_options import AblationStage, Protocol
from evals import report_formats as reports
from evals.report import report
from evals.tables import AnsweredQuestion
from library.rounds import load_history
from store.database import Store
from tests.support import markup_video
from tests.support.evaluation_rows import run_settings
from ui.trajectory_tools import render_page

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
DID = "window.did=1"
BAIT = (
    f"</title></style></textarea></script><script>{DID}</script><img src=x onerror={DID}>"
    f"\"'><svg/onload={DID}><iframe srcdoc='<script>parent.did=1</script>'></iframe>"
    "<base href='http://evil.example/'><meta http-equiv=refresh content='0;url=http://evil.example/m'>"
    "<link rel=stylesheet href=http://evil.example/s.css><form action=http://evil.example/f><input "
    "name=a autofocus onfocus='window.did=1'><a href='javascript:window.did=1' id=evil>x</a>"
    "<object data=http://evil.example/o></object><video src=http://evil.example/v></video>"
    "<style>@import 'http://evil.example/i';*{{background:url(http://evil.example/b)}}</style>"
    "<!-- --!> <![CDATA[ $title $question ${answer} %s {0} \u202e\u2028\x0b"
)
LAST = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.fixture(scope="module")
def browser_page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Page, list[str]]]:
    """A tab of a real browser, and the addresses that it asks for."""
    if not Path(CHROMIUM).exists():
        pytest.skip("no chromium: apt install chromium")
    from playwright.sync_api import sync_playwright

    asked: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        context = browser.new_context()

        def stop(route: Route) -> None:
            asked.append(route.request.url)
            route.abort()

        # What the page's policy stops comes to no route: only what would leave the browser does.
        context.route(re.compile("^(?!file:|data:)"), stop)
        yield context.new_page(), asked
        browser.close()


@pytest.fixture
def answered(store: Store, monkeypatch: pytest.MonkeyPatch) -> str:
    """The page of a trajectory in which everything that somebody said or made is bait."""
    store.home.config.write_text('[profiles.scripted]\nbase = "local"\n')
    monkeypatch.setattr(markup_video, "BAIT", BAIT)
    asked = markup_video.plant(store, f"/films/{BAIT[:40]}")
    return render_page(store, load_history(store, asked))


@pytest.fixture
def evaluated() -> str:
    """The page of an evaluation in which everything is bait."""
    row = AnsweredQuestion(
        arm=str(AblationStage.WHOLE),
        part=QuestionPart.TEST,
        batch=0,
        id=BAIT,
        video=BAIT,
        types=(BAIT,),
        question=BAIT, options=(BAIT,), reference=BAIT, answer=BAIT, option="", right=False,
        judge=BAIT, why=BAIT, cited=None, top=None, iou=None, ref300=None, fault=None, failed=False,
        rounds=1, tokens=1, seconds=1.0, cost_usd=0.1, skills=(BAIT,), leaked=(), trajectory=BAIT,
    )  # fmt: skip
    settings = run_settings(protocol=Protocol.NONE, dataset=BAIT, profile=BAIT, judge=BAIT)
    run = EvaluationRun(
        name=BAIT, settings=settings, state="done", note=BAIT, began_at=LAST, planned=1, judged=1
    )
    return reports.as_page(report(run, [row], {}, 1.5))


def shown(browser_page: tuple[Page, list[str]], html: str, folder: Path) -> list[str]:
    """What came of a page that was opened from a file, and clicked on: all that it should not."""
    page, asked = browser_page
    path = folder / "page.html"
    path.write_text(html, encoding="utf-8", errors="replace")
    asked.clear()
    page.goto(path.as_uri())
    page.evaluate("document.querySelectorAll('summary, a, button').forEach(one => one.click?.())")
    page.wait_for_timeout(200)
    strange = (
        "[...document.querySelectorAll('script,iframe,object,form,input,base,link,video,svg[onload],"
        "meta[http-equiv=refresh]')].map(one => one.outerHTML)"
    )
    found: list[str] = page.evaluate(strange)
    found += ["a script ran"] if page.evaluate("window.did") else []
    return [*found, *asked]


def without_policy(html: str) -> str:
    """The page with nothing but its escaping to hold it."""
    bare, removed = re.subn(r"<meta http-equiv=\"Content-Security-Policy\"[^>]*>", "", html)
    assert removed == 1
    return bare


@pytest.mark.parametrize("kind", ["answered", "evaluated"])
def test_no_word_becomes_markup_even_without_the_policy(
    browser_page: tuple[Page, list[str]], tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    html = request.getfixturevalue(kind)
    assert html.count("&lt;script&gt;") > 5
    assert shown(browser_page, html, tmp_path) == []
    assert shown(browser_page, without_policy(html), tmp_path) == []


@pytest.mark.parametrize("kind", ["answered", "evaluated"])
def test_the_policy_holds_what_was_not_escaped(
    browser_page: tuple[Page, list[str]], tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    html = request.getfixturevalue(kind)
    held = re.sub(r"<meta http-equiv=refresh[^>]*>", "", BAIT)  # No policy of a page holds that.
    raw = html.replace("<h1", f"<p>{held}</p><h1", 1)
    found = shown(browser_page, raw, tmp_path)
    assert "a script ran" not in found
    assert [one for one in found if one.startswith("http")] == []
    for output in ("default-src 'none'", "base-uri 'none'", "form-action 'none'"):
        assert output in html
    bare = shown(browser_page, without_policy(raw), tmp_path)
    assert "a script ran" in bare, "the bait works"
    assert any(one.startswith("http://evil.example") for one in bare)
