"""Alerts on the command line and on their page."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.main import app
from store.database import Store
from tests.support.app_pages import app_over, open_page, press, words
from tests.support.full_video import fill

VIDEO, NAME = "a" * 16, "cups-of-" + "a" * 16


@pytest.fixture
def filled(store: Store, monkeypatch: pytest.MonkeyPatch, tampered: None) -> Store:
    fill(store, VIDEO, "kitchen")
    monkeypatch.setenv("HOMER_DATABASE_URL", store.url)
    return store


def homer(*arguments: str, code: int = 0) -> Any:
    done = CliRunner().invoke(app, ["alert", *arguments])
    assert done.exit_code == code, done.output
    return done


def test_alerts_are_added_listed_and_removed(filled: Store) -> None:
    homer("add", "ladder", "someone carries a ladder", "--video", "kitchen", "--debounce", "5")
    homer("add", "anna", "--person", "Anna", "--command", "true")
    listed = {one["name"]: one for one in json.loads(homer("list", "--json").stdout)}
    assert listed.keys() == {"ladder", "anna", NAME}
    assert (listed["ladder"]["title"], listed["ladder"]["debounce_s"]) == ("kitchen", 5.0)
    assert listed["anna"]["place"].startswith("command /")
    assert "Anna was seen" in homer().stdout
    homer("remove", "anna")
    assert "Anna" not in homer("list").stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("add", "Big", "what"),
        ("add", "none"),
        ("add", "two", "what", "--unknown-face"),
        ("add", NAME, "again"),
        ("add", "a", "what", "--video", "nowhere"),
        ("add", "a", "what", "--threshold", "2"),
        ("add", "a", "what", "--command", "no-such-program x"),
        ("add", "a", "what", "--command", "true", "--webhook", "https://example.org"),
        ("add", "a", "what", "--secret-file", "/nowhere"),
        ("remove", "nothing"),
        ("hits", "nothing"),
        ("hits", "--as-of", "1:00"),
    ],
)
def test_what_cannot_be_used_is_refused_in_words(filled: Store, arguments: tuple[str, ...]) -> None:
    homer(*arguments, code=2)
    assert len(json.loads(homer("list", "--json").stdout)) == 1


def test_page_shows_alerts_with_their_hits(filled: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with app_over(filled, monkeypatch):
        output = words(open_page("alerts"))
        for part in ("a cup", "kitchen, recorded only, 1 hit", "match 0.90, recorded"):
            assert part in output


def test_without_alerts_a_form_adds_one(filled: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    homer("remove", NAME)
    with app_over(filled, monkeypatch):
        page = open_page("alerts")
        assert "There is no alert yet" in words(page)
        assert "is no name of an alert" in press(page, "Add").error[0].value.replace("\\", "")
        wanted, name = page.text_input
        wanted.set_value("someone carries a ladder")
        name.set_value("ladder")
        assert "all videos, recorded only, 0 hits" in words(press(page, "Add"))
    (alert,) = json.loads(homer("list", "--json").stdout)
    assert (alert["name"], alert["question"]) == ("ladder", "someone carries a ladder")
