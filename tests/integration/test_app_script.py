"""The app's pages without a browser: what they say when there is nothing, or nonsense."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text as sql
from streamlit.testing.v1 import AppTest
from typer.testing import CliRunner

from cli.main import app as command
from models.toolbox import Toolbox
from store.database import Store
from store.home import Home
from tests.support.app_pages import (
    EVIL,
    app_over,
    forget_app_state,
    open_page,
    output,
    press,
    words,
)
from tests.support.asking import remember_party
from tests.support.obedient_model import LlmToolbox, purpose_of
from tests.support.openai_server import OpenAIServer
from tests.support.searching_model import searching
from ui.app_state import page_state
from ui.formatting import escape_markdown

CAPTIONS = '{"start": 2, "end": 8, "text": "The harbour was rebuilt after the earthquake."}\n'

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def empty(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """An empty library, opened anew for this test."""
    with app_over(store, monkeypatch):
        yield store.home


@pytest.fixture
def library(empty: Home, toolbox: Toolbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setattr("flows.workspace.Toolbox", lambda _profile, _weights: toolbox)
    monkeypatch.setattr("flows.agent_pool.Toolbox", lambda _profile, _weights: toolbox)
    path = tmp_path / "lecture.jsonl"
    path.write_text(CAPTIONS)
    done = CliRunner().invoke(command, ["import", "lecture", "--captions", str(path)])
    assert done.exit_code == 0, done.stderr
    return empty


def field(page: AppTest, label: str) -> Any:
    fields = (*page.text_input, *page.text_area, *page.multiselect, *page.selectbox)
    return next(one for one in fields if one.label.startswith(label))


def answer(page: AppTest) -> str:
    """The answer, which stands below its question with the numbers of its citations."""
    return next((str(one.value) for one in page.markdown if ":small[" in str(one.value)), "")


def ask(page: AppTest, text: str, options: str = "", as_of: str = "") -> AppTest:
    """Asks, and waits for the search, which goes on beside the page."""
    field(page, "Question").input(text)
    field(page, "Choices").input(options)
    field(page, "As of").input(as_of)
    press(page, "Ask")
    name = output(page, "trajectory")
    if name:
        page_state().runs.wait(name, 120)
        page.run()
        assert not page.exception
    return page


def test_an_empty_library_says_how_to_begin(empty: Home) -> None:
    page = open_page("ask")
    assert page.title[0].value == "Ask"
    assert "Nothing has been watched yet" in words(page)
    assert [button.label for button in page.button] == ["Add a video"]


def test_a_lost_database_is_one_message(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOMER_DATABASE_URL", "postgresql://me:s3cret@127.0.0.1:1/homer")
    forget_app_state()
    page = open_page("ask")
    forget_app_state()
    assert "cannot be reached" in page.error[0].value
    assert "This page continues" in words(page)
    assert "s3cret" not in page.error[0].value


@pytest.mark.parametrize(
    ("text", "options", "as_of", "said"),
    [
        ("", "", "", "Write a question first"),
        ("   ", "", "", "Write a question first"),
        ("What?", "\n".join(map(str, range(27))), "", "At most 26 options"),
        ("What?", "", "soon", "is not a time"),
    ],
)
def test_a_bad_form_says_why(library: Home, text: str, options: str, as_of: str, said: str) -> None:
    page = ask(open_page("ask"), text, options, as_of)
    assert said in page.warning[0].value
    assert "See every step" not in words(page)


def test_a_question_as_of_the_beginning_knows_nothing(library: Home) -> None:
    page = ask(open_page("ask"), "What was rebuilt?", as_of="00:01")
    assert "Not in memory" in page.warning[0].value
    assert any("Pictures were not searched" in one.value for one in page.caption)
    assert not answer(page)


def test_words_of_a_note_are_shown_as_words(library: Home, store: Store) -> None:
    """It names who wrote a memory, as an import says it."""
    page = ask(open_page("ask"), "What was rebuilt?")
    change = (
        "UPDATE trajectories SET answer = answer || jsonb_build_object('note', :note\\:\\:text)"
    )
    with store.begin() as session:
        session.execute(sql(change), {"note": EVIL})
    again = open_page("ask", trajectory=output(page, "trajectory"))
    (help_,) = [one.proto.help for one in again.caption if one.value == "Closest quote"]
    assert help_ == escape_markdown(EVIL) != EVIL


def test_an_answer_can_be_found_again_by_its_address(library: Home) -> None:
    page = ask(open_page("ask"), "What was rebuilt?")
    again = open_page("ask", trajectory=output(page, "trajectory"))
    assert answer(again) == answer(page) != ""
    assert field(again, "Videos").value == field(page, "Videos").value


def test_not_in_memory_looks_different(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(request: dict[str, Any]) -> Any:
        if purpose_of(request) == "conclude":
            return {"option": None, "answer": "", "citations": [], "not_in_memory": True}
        return searching(request)

    remember_party(store)
    with OpenAIServer(nothing) as server, app_over(store, monkeypatch, lambda: LlmToolbox(server)):
        page = ask(open_page("ask"), "Who flies to the moon?")
    assert "Not in memory" in page.warning[0].value
    assert "Searched for:" in words(page)
    assert not answer(page)


def test_search_is_shown_and_can_be_stopped(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model waits until the page was drawn; then a person has enough."""
    go_on = threading.Event()

    def slowly(request: dict[str, Any]) -> Any:
        go_on.wait(60)
        return searching(request)

    remember_party(store)
    with OpenAIServer(slowly) as server, app_over(store, monkeypatch, lambda: LlmToolbox(server)):
        page = open_page("ask")
        field(page, "Question").input("What does Bob play?")
        press(page, "Ask")
        name = output(page, "trajectory")
        assert page.status[0].label == "Searching the memory ..."
        press(page, "Stop")
        go_on.set()
        page_state().runs.wait(name, 60)
        page.run()
    assert not page.status
    assert "See every step" in words(page)
