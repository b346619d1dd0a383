"""Recaps: a day or an hour of a video summed up from its events, on record and in a file."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sqlalchemy import text, update
from typer.testing import CliRunner

from cli.main import app
from domain.built import Period, cited_times, linked_citations, parse_period
from domain.memories import Segment
from domain.time import TimeSpan
from flows.recap import MAX_EVENTS, chosen_events, plain, recap_model, write_recap
from flows.removal import delete_video
from flows.schedules import work
from flows.schedules.kinds import RecapOptions
from flows.workspace import Workspace
from memory.delete_span import delete_span
from models.profile import load_profile
from models.toolbox import Toolbox
from people.forget import forget
from store.database import Store
from store.queries.outline import recaps_page
from store.tables.videos import StreamRow
from tests.support.app_pages import app_over, open_page, press, words
from tests.support.full_video import fill
from tests.support.memory import SETTINGS, WordVectors
from tests.support.obedient_model import LlmToolbox, texts_of
from tests.support.openai_server import OpenAIServer

VIDEO, OTHER = "a" * 16, "b" * 16
BEGAN = datetime.fromtimestamp(1_700_000_000, UTC)
"""When the streams of full videos began."""
DAY = Period.at("day", BEGAN)

pytestmark = pytest.mark.usefixtures("tampered")


class ShortVectors(WordVectors):
    """As short as those of full videos."""

    name, dimensions = "short", 3

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return super().embed(texts)[:, :3]


@pytest.fixture
def kitchen(store: Store) -> Store:
    fill(store, VIDEO, "kitchen")
    return store


def files(store: Store) -> list[str]:
    return sorted(
        str(path.relative_to(store.home.recaps)) for path in store.home.recaps.rglob("*.md")
    )


def events_of(store: Store, video: str) -> list[tuple[int, str]]:
    query = text(
        "SELECT s.id, r.summary FROM segments s JOIN segment_revisions r ON r.segment_id = s.id "
        "WHERE s.video_id = :video AND r.to_clip IS NULL AND r.absorbed_into IS NULL ORDER BY s.id"
    )
    with store.begin() as session:
        return [(row[0], row[1]) for row in session.execute(query, {"video": video})]


def test_a_day_is_summed_up_with_its_events_and_citations(kitchen: Store) -> None:
    written = write_recap(kitchen, DAY, "kitchen")
    assert written.file is not None
    output = written.file.read_text()
    assert output.startswith(f"# {DAY.name}\n\n## kitchen\n")
    events = [(number, summary) for number, summary in events_of(kitchen, VIDEO) if summary]
    assert events
    for number, summary in events:
        assert f"](http://127.0.0.1:8501/video?video={VIDEO}&segment={number})" in output
        assert summary in output
    assert not re.search(r"\bs\d+\]", output)
    assert written.file.stat().st_mode & 0o077 == 0
    with kitchen.begin() as session:
        (stored,), total = recaps_page(session, 0, 10)
    assert (total, stored.period, stored.title) == (1, DAY.name, "kitchen")
    assert linked_citations(stored.text, VIDEO, "http://127.0.0.1:8501") in output
    assert "Put together from the summaries of " in output


def test_deletions_and_forgetting_take_recaps_along(kitchen: Store) -> None:
    fill(kitchen, OTHER, "hall")

    def written() -> tuple[int, list[str]]:
        with kitchen.begin() as session:
            return recaps_page(session, 0, 10)[1], files(kitchen)

    def write() -> None:
        for name in (None, "kitchen", "hall"):
            write_recap(kitchen, DAY, name)

    hall = [f"{DAY.name}/{OTHER}.md"]
    write()
    assert written() == (2, sorted([*hall, f"{DAY.name}/{VIDEO}.md", f"{DAY.name}/all.md"]))
    forget(kitchen, VIDEO, "0", ShortVectors())
    assert written() == (1, hall)
    write()
    delete_span(kitchen, VIDEO, TimeSpan.of(0, 1000), ShortVectors(), SETTINGS.memory)
    assert written() == (1, hall)
    write()
    delete_video(kitchen, VIDEO)
    assert written() == (1, hall)


def test_a_long_day_has_one_event_of_each_part() -> None:
    segments = [
        Segment(
            id=n + 1,
            video=VIDEO,
            number=n,
            label=f"event {n}",
            summary="",
            revision=0,
            clips=(n,),
            span=TimeSpan.of(1000 * n, 1000 * n + 1 + n % 7),
        )
        for n in range(700)
    ]
    chosen = chosen_events(segments, TimeSpan.of(0, 700_000))
    assert len(chosen) == MAX_EVENTS
    assert {one.span.length_ms for one in chosen} == {7}
    assert [one.number for one in chosen] == sorted(one.number for one in chosen)
    assert chosen_events(segments[:5], TimeSpan.of(0, 700_000)) == segments[:5]


def test_a_schedule_sums_up_the_period_before(kitchen: Store) -> None:
    profile = load_profile("local")
    toolbox = Toolbox(profile, kitchen.home.weights)
    workspace = Workspace(kitchen.home, kitchen, profile, toolbox, background=True)
    report = work.recap(workspace, RecapOptions(), BEGAN + timedelta(days=1))
    assert report.text == f"{DAY.name}: 1 video summed up"
    assert files(kitchen) == [f"{DAY.name}/all.md"]


def test_the_command_and_the_page_show_it(kitchen: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOMER_DATABASE_URL", kitchen.url)
    run = CliRunner()
    done = run.invoke(app, ["recap", "kitchen", "--day", DAY.name, "--json"])
    assert done.exit_code == 0, done.output
    (told,) = json.loads(done.stdout)["recaps"]
    assert told["title"] == "kitchen"
    assert run.invoke(app, ["recap", "--hour", "2020-01-01T00"]).exit_code == 0
    for wrong in (["--day", "soon"], ["--hour", "2026-11-25"], ["--day", "today", "--hour", "now"]):
        assert run.invoke(app, ["recap", *wrong]).exit_code == 2
    printed = run.invoke(app, ["recap", "kitchen", "--day", DAY.name]).stdout
    assert re.search(r"\[\d:\d\d-\d:\d\d\]", printed)
    assert not re.search(r", s\d+\]", printed)
    with app_over(kitchen, monkeypatch):
        shown = words(open_page("recaps"))
    assert f"{DAY.name}: kitchen" in shown
    assert f"](/video?video={VIDEO}&segment=" in shown


def test_the_page_sums_up_day_by_a_button(kitchen: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    today = Period.at("day", datetime.now().astimezone())
    with app_over(kitchen, monkeypatch):
        page = open_page("recaps")
        assert "There is no recap yet" in words(page)
        assert "Nothing of yesterday is in memory" in words(press(page, "Sum up yesterday"))
        with kitchen.begin() as session:
            began = round(today.start.timestamp() * 1000)
            session.execute(update(StreamRow).values(began_ms=began))
        assert f"{today.name}: kitchen" in words(press(page, "Sum up today"))


class RecapModel:
    """Writes a line of each pair of events; its first ``wrong`` replies cannot be used."""

    def __init__(self, *wrong: Any) -> None:
        self.wrong = list(wrong)
        self.shown: list[str] = []

    def __call__(self, request: dict[str, Any]) -> Any:
        self.shown = re.findall(r"^\d+\. \d\d:\d\d (.*)$", texts_of(request)[1], re.MULTILINE)
        if self.wrong:
            return self.wrong.pop(0)
        return {"lines": [{"text": f"In short: {self.shown[0]}", "events": [1, len(self.shown)]}]}


def written(store: Store, model: Any) -> str:
    with OpenAIServer(model) as server:
        toolbox = LlmToolbox(server, reasoner="local", writer="llm")
        workspace = Workspace(store.home, store, toolbox.profile, toolbox)
        write_recap(store, DAY, "kitchen", recap_model(workspace))
    with store.begin() as session:
        (stored,), _ = recaps_page(session, 0, 10)
    return stored.text


def test_a_language_model_writes_it_with_citations_of_its_events(kitchen: Store) -> None:
    text = written(kitchen, RecapModel())
    numbers = [number for number, _ in events_of(kitchen, VIDEO)]
    line, last = text.split("\n\n")
    assert line.startswith("- ")
    assert "In short: " in line
    assert re.findall(r"s(\d+)\]", line) == [str(numbers[0]), str(numbers[-1])]
    assert last == f"Written by the language model from {len(numbers)} events."


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"lines": [{"text": "It was.", "events": [99]}]}, "line 1 names event 99"),
        ({"lines": [{"text": "It was.", "events": []}]}, "line 1 names no event"),
        ({"lines": [{"text": "A rhinoceros sang.", "events": [1]}]}, "line 1 says nothing that"),
        ({"lines": []}, "there is no line"),
        ({"lines": [{"text": " ", "events": [1]}]}, "line 1 is empty"),
    ],
)
def test_citations_are_checked_and_asked_again(kitchen: Store, wrong: Any, complaint: str) -> None:
    asked: list[str] = []
    model = RecapModel(wrong)

    def answer(request: dict[str, Any]) -> Any:
        asked.append("\n".join(texts_of(request)))
        return model(request)

    assert "Written by the language model" in written(kitchen, answer)
    assert len(asked) == 2
    assert complaint in asked[1]


def test_what_cannot_be_used_twice_is_replaced_by_rules_and_that_is_said(kitchen: Store) -> None:
    unusable = {"lines": [{"text": "It was.", "events": [99]}]}
    text = written(kitchen, RecapModel(unusable, unusable))
    assert "It was" not in text
    assert text.endswith("what the language model wrote could not be used.")
    assert events_of(kitchen, VIDEO)[0][1] in text


def test_a_recap_whose_events_change_meanwhile_is_written_anew(kitchen: Store) -> None:
    number, _ = events_of(kitchen, VIDEO)[0]
    model = RecapModel()

    def answer(request: dict[str, Any]) -> Any:
        if not model.shown:
            change = "UPDATE segment_revisions SET summary = 'Ann sings' WHERE segment_id = :id"
            with kitchen.begin() as session:
                session.execute(text(change), {"id": number})
        return model(request)

    assert "Ann sings" in written(kitchen, answer)


def test_words_of_a_summary_forge_no_citation() -> None:
    forged = "- 10:00 \\[00:01-00:02, s5\\] and [00:01-00:02, s6]"
    assert linked_citations(forged, VIDEO) == (
        f"- 10:00 \\[00:01-00:02, s5\\] and [0:01-0:02](/video?video={VIDEO}&segment=6)"
    )
    assert cited_times("[1:00:05-d2 0:10:00, s7]") == "[1:00:05-d2 0:10:00]"


@pytest.mark.parametrize(
    ("words", "link"),
    [
        ("https://evil.example/?key=1", "https://evil.example"),
        ("www.evil.example", "www.evil"),
        ("ann@evil.example", "ann@evil"),
        ("https&colon;//evil.example", "https&colon;"),
        ("&#104;ttps://evil.example", "&#104;"),
        (":material/delete:", ":material/"),
        ("http://1.evil.example", "http://"),
        ("_https://evil.example", "https://"),
        ("ftp://evil.example", "ftp://"),
        ("![x](//evil.example/x.png)", "!["),
    ],
)
def test_words_of_a_summary_make_no_link_and_no_picture(words: str, link: str) -> None:
    shown = plain(f"A sign says {words} beside <character_5>")
    assert link not in shown
    assert shown.startswith("A sign says ")
    assert shown.endswith(" beside person 5")


def test_periods_are_parsed() -> None:
    now = datetime(2026, 11, 25, 14, 30).astimezone()
    assert parse_period("day", "yesterday", now).name == "2026-11-24"
    assert parse_period("hour", "last", now).name == "2026-11-25T13"
    assert parse_period("hour", "2026-11-25T00", now).before.name == "2026-11-24T23"
    assert (
        parse_period("day", "2026-03-01", now).before.end
        == parse_period("day", "2026-03-01", now).start
    )
