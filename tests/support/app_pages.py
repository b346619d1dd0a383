"""The app without a browser: one page of it over a store of the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

import ui
from domain.words import WORD_JOINER
from flows import agent_pool
from store.database import Store
from tests.support.asking import WordToolbox
from ui.app_state import _whole_state
from ui.language import CHOSEN
from ui.media import shared_store
from ui.sign_in import SignInState

SCRIPT = str(Path(ui.__file__).with_name("app.py"))
RTL = "مرحبا بكم في القصر الكبير"
LONG = "Donaudampfschifffahrtsgesellschaft" * 12
EVIL = "<img src=x onerror=alert(1)> **bold** [link](http://example.org) :red[x] $x$"


def sign_in(monkeypatch: pytest.MonkeyPatch, who: str) -> None:
    """From here on pages are somebody's who signed in by a provider."""
    monkeypatch.setattr("ui.sign_in.SIGN_IN", SignInState(required=True))
    user = {"is_logged_in": True, "email": who, "provider": "default", "sub": "1"}
    user["email_verified"] = True
    monkeypatch.setattr("ui.sign_in.user_from_cookies", lambda _cookies: user)


def forget_app_state() -> None:
    """The next page opens the library anew."""
    shared_store.cache_clear()
    _whole_state.clear()


@contextmanager
def app_over(
    store: Store, patch: pytest.MonkeyPatch, toolbox: Any = WordToolbox
) -> Iterator[Store]:
    """The app opens ``store``; ``toolbox`` makes the models of a profile."""
    patch.setenv("HOMER_DATABASE_URL", store.url)
    patch.setattr(agent_pool, "Toolbox", lambda _profile, _weights: toolbox())
    forget_app_state()
    yield store
    shared_store().close()
    forget_app_state()


component_manifests = cache(manifest_scanner.scan_component_manifests)
"""Read once: it parses the metadata of every installed package, for each page that is opened."""


def open_page(name: str, **query: object) -> AppTest:
    """A page as it is drawn first, by its address."""
    return open_page_in("", name, **query)


def open_page_in(language: str, name: str, /, **query: object) -> AppTest:
    """A page in a language that was chosen; "" for none."""
    page = AppTest.from_file(SCRIPT, default_timeout=120)
    if language:
        page.session_state[CHOSEN] = language
    page._page_hash = calc_hash(name)
    for key, value in query.items():
        page.query_params[key] = str(value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", component_manifests)
        page.run()
    assert not page.exception, page.exception
    return page


def output(page: AppTest, name: str) -> str:
    value = page.query_params.get(name, "")
    return str(value[-1] if isinstance(value, list) else value)


def words(page: AppTest) -> str:
    """All that stands on a page, as it is read."""
    kinds = (page.title, page.header, page.subheader, page.markdown, page.caption)
    boxes = (page.info, page.warning, page.error, page.success, page.toast)
    output = [str(one.value) for kind in (*kinds, *boxes) for one in kind]
    output += [str(one.proto.body) for one in page.get("html")]
    output += [str(one.proto.label) for one in page.get("page_link")]
    output += [one.label for one in page.expander] + [one.label for one in page.button]
    return "\n".join(output).replace("\\", "").replace(WORD_JOINER, "")


def tables(page: AppTest) -> list[list[list[str]]]:
    """The tables of a page: rows of cells, the headings first."""
    bodies = [str(one.proto.body) for one in page.get("html")]
    drawn = [
        ElementTree.fromstring(body)  # noqa: S314 - a page of our own
        for body in bodies
        if 'class="homer-table"' in body
    ]
    return [[["".join(cell.itertext()) for cell in row] for row in one.iter("tr")] for one in drawn]


def press(page: AppTest, label: str) -> AppTest:
    next(b for b in page.button if b.label.replace("\\", "").startswith(label)).click().run()
    assert not page.exception, page.exception
    return page


def charts(page: AppTest) -> list[str]:
    """What the charts of a page say to whoever does not see them."""
    return [one.proto.alt for one in page.get("vega_lite_chart")]
