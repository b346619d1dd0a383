"""The health page: what is missing and how to get it, and what went wrong lately."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from domain.asking import Question
from domain.media import ClipState
from flows.health import space, troubles, versions
from store.database import Store
from store.queries.clips import mark_clip, view_of
from store.queries.trajectories import add_trajectory, end_trajectory
from tests.support.memory import VIDEO, known_video
from tests.support.pages import EVIL, app_over, open_page, words
from ui.health import checks_of


@pytest.fixture
def shelf(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    checks_of.clear()
    with app_over(store, monkeypatch):
        yield store


def test_a_machine_without_weights_says_how_to_get_them(
    shelf: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOMER_WEIGHTS", str(shelf.home.root / "none"))
    page = open_page("health")
    assert "are missing" in page.error[0].value
    assert any("homer models pull" in code.value for code in page.code)
    assert "database" in str(page.table[0].value)
    assert "None." in words(page)


def test_what_failed_is_listed_the_latest_first(shelf: Store) -> None:
    known_video(shelf, 2)
    with shelf.begin() as session:
        mark_clip(session, VIDEO, 1, ClipState.FAILED, EVIL)
    with shelf.begin() as session:
        view = view_of(session, [VIDEO])
        add_trajectory(
            session, "a" * 16, Question(text="why?", videos=(VIDEO,)), view, "homer", "local"
        )
        end_trajectory(session, "a" * 16, "failed", None, 0, 0.0)
    found = troubles(shelf)
    assert [one.trajectory for one in found] == ["a" * 16, None]
    page = open_page("health")
    assert EVIL in words(page)
    assert "why?" in words(page)
    assert not any(one.allow_html for one in page.markdown)


def test_room_and_versions_are_told(shelf: Store) -> None:
    room = space(shelf)
    assert room.database > 1_000_000
    assert room.images == 0
    assert 0 < room.free <= room.total
    assert versions()["streamlit"][0].isdigit()
