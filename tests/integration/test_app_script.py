"""The app's pages without a browser: what they say when there is nothing, or nonsense."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from typer.testing import CliRunner

import ui
from cli.main import app as command
from models.toolbox import Toolbox
from store.home import Home
from ui.desk import page_desk
from ui.files import shared_store

SCRIPT = str(Path(ui.__file__).with_name("app.py"))
CAPTIONS = '{"start": 2, "end": 8, "text": "The harbour was rebuilt after the earthquake."}\n'

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def empty(home: Home, database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """An empty library, opened anew for this test."""
    monkeypatch.setenv("HOMER_DATABASE_URL", database)
    _forget()
    yield home
    shared_store().close()
    _forget()


def _forget() -> None:
    shared_store.cache_clear()
    page_desk.clear()


@pytest.fixture
def library(empty: Home, toolbox: Toolbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A library with one imported lecture."""
    monkeypatch.setattr("flows.desk.Toolbox", lambda _profile, _weights: toolbox)
    monkeypatch.setattr("ui.desk.Toolbox", lambda _profile, _weights: toolbox)
    path = tmp_path / "lecture.jsonl"
    path.write_text(CAPTIONS)
    done = CliRunner().invoke(command, ["import", "lecture", "--captions", str(path)])
    assert done.exit_code == 0, done.stderr
    return empty


def open_app() -> AppTest:
    page = AppTest.from_file(SCRIPT, default_timeout=120).run()
    assert not page.exception
    return page


def ask(page: AppTest, text: str, options: str = "", as_of: str = "") -> AppTest:
    page.text_input[0].input(text)
    page.text_area[0].input(options)
    page.text_input[1].input(as_of)
    page.button[0].click().run()
    assert not page.exception
    return page


def test_an_empty_library_says_how_to_begin(empty: Home) -> None:
    page = open_app()
    assert page.title[0].value == "Ask"
    assert "homer ingest" in page.info[0].value


def test_a_database_that_cannot_be_reached_is_one_message(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOMER_DATABASE_URL", "postgresql://me:s3cret@127.0.0.1:1/homer")
    _forget()
    page = open_app()
    _forget()
    assert "cannot be reached" in page.error[0].value
    assert "s3cret" not in page.error[0].value


@pytest.mark.parametrize(
    ("text", "options", "as_of", "told"),
    [
        ("", "", "", "Write a question first"),
        ("   ", "", "", "Write a question first"),
        ("What?", "\n".join(map(str, range(27))), "", "At most 26 options"),
        ("What?", "", "soon", "is not a time"),
    ],
)
def test_a_form_that_cannot_be_sent_says_why(
    library: Home, text: str, options: str, as_of: str, told: str
) -> None:
    page = ask(open_app(), text, options, as_of)
    assert told in page.warning[0].value
    assert not page.subheader


def test_an_answer_has_its_moment_and_its_trajectory(library: Home) -> None:
    page = ask(open_app(), "What was rebuilt?", "the harbour\nthe station")
    assert page.subheader[0].value.startswith("A")
    assert any("00:02\\-00:08" in m.value or "00:02-00:08" in m.value for m in page.markdown)
    assert any("homer trajectory" in caption.value for caption in page.caption)


def test_an_answer_stays_when_the_page_is_drawn_again(library: Home) -> None:
    page = ask(open_app(), "What was rebuilt?", "the harbour\nthe station")
    first = page.subheader[0].value
    page.run()
    assert page.subheader[0].value == first


def test_a_question_as_of_the_beginning_knows_nothing(library: Home) -> None:
    page = ask(open_app(), "What was rebuilt?", as_of="00:01")
    shown = [message.value for message in (*page.error, *page.subheader)]
    assert shown
    assert not any("harbour" in words for words in shown)


def test_the_library_lists_and_shows(library: Home) -> None:
    shown = AppTest.from_function(_library_script, default_timeout=120).run()
    assert not shown.exception
    assert shown.title[0].value == "Library"
    assert list(shown.dataframe[0].value["title"]) == ["lecture"]
    assert any("harbour was rebuilt" in m.value for m in shown.markdown)


def _library_script() -> None:
    from ui.library import library_page

    library_page()
