"""The health page: what is missing and how to get it, and what went wrong lately."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from threading import Event
from typing import Any

import pytest

from domain.asking import Question
from domain.errors import InputError, NotFound, SetupError
from domain.media import ClipState
from flows.schedules.kinds import ScheduleEntry, ScheduleRun
from services.health import Check, recent_failures
from store.database import Store
from store.queries.clips import mark_clip, memory_view
from store.queries.trajectories import add_trajectory, end_trajectory
from store.queries.videos import record_processed
from tests.support.app_pages import EVIL, app_over, open_page, open_page_in, press, tables, words
from tests.support.memory import VIDEO, known_video
from ui.health import checks_of


@pytest.fixture
def library(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    checks_of.clear()
    # The checks are of real models: a busy machine takes a moment for them.
    monkeypatch.setattr("ui.health.WAIT_S", 60.0)
    with app_over(store, monkeypatch):
        yield store


def test_no_weights_says_how_to_get_them(library: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOMER_WEIGHTS", str(library.home.root / "none"))
    page = open_page("health")
    assert "are missing" in page.error[0].value
    assert any("homer models pull" in code.value for code in page.code)
    assert "database" in [row[0] for row in tables(page)[0]]
    assert "None." in words(page)


def test_long_checks_are_shown_meanwhile(library: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    over = Event()

    def checks(*_: object) -> Iterator[Check]:
        yield Check("codecs", True, "all of them")
        over.wait(60)
        yield Check("images", False, "not fetched", "homer models pull")

    monkeypatch.setattr("ui.health.WAIT_S", 0.0)
    monkeypatch.setattr("ui.health.check_setup", checks)
    page = open_page("health")
    assert "codecs: ok" in words(page)
    assert "Disk space" in [one.value for one in page.header]
    assert not page.error
    over.set()
    monkeypatch.setattr("ui.health.WAIT_S", 60.0)
    page.run()
    assert "1 of 2 requirements is missing." in page.error[0].value


def test_checks_are_in_language_of_page(library: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOMER_WEIGHTS", str(library.home.root / "none"))
    page = open_page_in("de", "health")
    found = {what: text for what, _, text in tables(page)[0]}
    assert {"Datenbank", "Zugriffsrechte", "Suchindex", "Codecs", "Geräusche"} <= set(found)
    assert found["Modell minilm"] == "model.onnx fehlt"
    assert found["Gerät"].startswith("Bilder und Stimmen: ")
    assert "homer models pull minilm" in [code.value for code in page.code]


def test_a_check_that_fails_is_reported(library: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def checks(*_: object) -> Iterator[Check]:
        yield Check("codecs", True, "all of them")
        raise InputError("the profile names no model")

    monkeypatch.setattr("ui.health.check_setup", checks)
    assert "the profile names no model" in open_page("health").error[0].value


def test_what_failed_is_listed_the_latest_first(library: Store) -> None:
    known_video(library, 2)
    with library.begin() as session:
        mark_clip(session, VIDEO, 1, ClipState.FAILED, EVIL)
    with library.begin() as session:
        view = memory_view(session, [VIDEO])
        add_trajectory(
            session, "a" * 16, Question(text="why?", videos=(VIDEO,)), view, "homer", "local"
        )
        end_trajectory(session, "a" * 16, "failed", None, 0, 0.0)
    assert [one.trajectory for one in recent_failures(library)] == ["a" * 16, None]
    page = open_page("health")
    assert EVIL in words(page)
    assert "why?" in words(page)
    assert not any(one.allow_html for one in page.markdown)


def test_a_file_of_a_schedule_that_could_not_be_watched_is_reported(library: Store) -> None:
    with library.begin() as session:
        record_processed(session, "0" * 64, f"/videos/{EVIL}: not a video")
        record_processed(session, "1" * 64)
    page = open_page("health")
    assert words(page).count("not a video") == 1
    assert EVIL in words(page)


def test_a_press_starts_the_server(library: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    monkeypatch.setattr("ui.unattended.api_url", lambda _home: "http://127.0.0.1:9/api")
    monkeypatch.setattr("ui.unattended.start_schedules", lambda _home, api: started.append(api))
    page = open_page("schedules")
    assert "Nothing runs the schedules at the moment." in words(page)
    assert started == []
    press(page, "Start them")
    assert started == ["http://127.0.0.1:9/api"]


def test_why_no_schedule_starts_is_shown(library: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_home: object) -> str:
        raise SetupError("Prefect's server does not start: no room")

    monkeypatch.setattr("ui.unattended.api_url", fail)
    assert "does not start: no room" in words(press(open_page("schedules"), "Start them"))


class PaperBook:
    """Schedules without a server, on which presses are noted."""

    def __init__(self) -> None:
        last = ScheduleRun(id="1", state="Failed", told=EVIL, at=None)
        output: dict[str, Any] = {
            "kind": "watch",
            "when": "every hour",
            "options": {},
            "last": last,
        }
        self.entry = ScheduleEntry(name="talks", on=True, declared=False, next=None, **output)
        self.run = self.none

    def entries(self) -> list[ScheduleEntry]:
        return [self.entry]

    def pause(self, name: str) -> None:
        self.entry = self.entry.model_copy(update={"on": name != self.entry.name})

    def resume(self, name: str) -> None:
        self.entry = self.entry.model_copy(update={"on": name == self.entry.name})

    def none(self, name: str) -> None:
        raise NotFound(f"there is no schedule {name!r}")


def test_a_click_pauses_and_goes_on(library: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    book = PaperBook()
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    monkeypatch.setattr("ui.unattended.open_schedules", lambda *_, **__: nullcontext(book))
    page = open_page("schedules")
    assert "every hour, on" in words(page)
    assert f"Failed: {EVIL}" in words(page)
    assert "Nothing runs the schedules at the moment" in words(page)
    assert page.get("link_button")[0].proto.url == "http://127.0.0.1:9/deployments"
    press(page, "Pause")
    assert [one.on for one in book.entries()] == [False]
    assert "every hour, paused" in words(page)
    press(page, "Resume")
    assert [one.on for one in book.entries()] == [True]
    press(page, "Run now")
    assert "there is no schedule" in page.error[-1].value
