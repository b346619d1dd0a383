"""The trajectory page: every step opened up, run again, gone on from, compared and taken away."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any

import pytest
from sqlalchemy import update
from streamlit.testing.v1 import AppTest

from domain.asking import Question
from domain.people import TAG
from domain.trajectory import ForkEdit
from graphs.ask_result import AskResult
from library.rounds import calls_in_round, load_history
from store.database import Store
from store.queries.trajectories import add_trajectory, find_trajectory, list_trajectories
from store.tables.schema import TrajectoryRow
from tests.support.app_pages import EVIL, LONG, RTL, app_over, open_page, press, words
from tests.support.asking import PARTY, remember_party
from tests.support.full_suite import in_full
from tests.support.library_templates import FilledLibraries
from tests.support.obedient_model import LlmToolbox, purpose_of
from tests.support.openai_server import OpenAIServer
from tests.support.runs import ask, fork
from tests.support.searching_model import PLAY, ask_at_party, searching
from ui.app_state import page_state
from ui.harness_remarks import HarnessPart
from ui.trajectory_tools import render_page


@pytest.fixture(scope="module")
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(searching) as running:
        yield running


@pytest.fixture
def party(
    store: Store, server: OpenAIServer, libraries: FilledLibraries, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Store]:
    libraries.fill(store, remember_party)
    store.home.config.write_text('[profiles.scripted]\nbase = "local"\n')
    with app_over(store, monkeypatch, lambda: LlmToolbox(server)):
        yield store


@pytest.fixture
def asked(party: Store, libraries: FilledLibraries) -> AskResult:
    return libraries.fill(party, ask_at_party)


def trajectories(store: Store) -> list[str]:
    with store.begin() as session:
        return [one.id for one in list_trajectories(session)]


def wait_for(store: Store, trajectory: str) -> str:
    page_state().runs.wait(trajectory, 60)
    with store.begin() as session:
        return find_trajectory(session, trajectory).state


def test_nothing_asked_yet_says_where_to_ask(party: Store) -> None:
    assert "Nothing has been asked yet" in words(open_page("history"))


def test_an_id_of_nothing_is_one_message_that_says_what_to_do(party: Store) -> None:
    page = open_page("trajectory", trajectory="ffff")
    assert "no trajectory goes by" in page.error[0].value.replace("\\", "")


@pytest.mark.parametrize("text", [EVIL, in_full(LONG), in_full(RTL)])
def test_the_list_shows_questions_as_words(party: Store, server: OpenAIServer, text: str) -> None:
    ask(party, LlmToolbox(server), Question(text=text, videos=(PARTY,)))
    page = open_page("trajectory")
    assert text in words(page)
    shown = open_page("trajectory", trajectory=trajectories(party)[0])
    assert text in words(shown)
    assert not any(one.allow_html for one in (*page.markdown, *shown.markdown))


def test_a_question_that_was_asked_often_is_recent_once(party: Store) -> None:
    from store.queries.clips import memory_view

    with party.begin() as session:
        view = memory_view(session, [PARTY])
        for number, text in enumerate(["who sings?", "who sings?", "who dances?", "who sings?"]):
            question = Question(text=text, videos=(PARTY,))
            add_trajectory(session, f"{number:016x}", question, view, "homer", "local")
            session.execute(
                update(TrajectoryRow)
                .where(TrajectoryRow.id == f"{number:016x}")
                .values(started_at=datetime(2026, 1, 1, 0, number, tzinfo=UTC))
            )
    links = [one.proto for one in open_page("ask").main.get("page_link")]
    recent = [(one.label, one.query_string) for one in links if "trajectory=" in one.query_string]
    assert recent == [
        ("who sings?", f"trajectory={3:016x}"),
        ("who dances?", f"trajectory={2:016x}"),
    ]
    assert "All 4 questions" in [one.label for one in links]


def test_a_long_list_is_shown_a_page_at_a_time_and_searched(party: Store) -> None:
    from store.queries.clips import memory_view

    with party.begin() as session:
        view = memory_view(session, [PARTY])
        for number in range(60):
            question = Question(text=f"what is thing {number:02d}?", videos=(PARTY,))
            add_trajectory(session, f"{number:016x}", question, view, "homer", "local")
    first = open_page("trajectory")
    assert len(first.main.get("page_link")) == 25
    assert "1 to 25 of 60" in words(first)
    assert len(open_page("trajectory", page=3).main.get("page_link")) == 10
    assert len(open_page("trajectory", page=99).main.get("page_link")) == 10
    assert len(open_page("trajectory", q="thing 07").main.get("page_link")) == 1


def test_a_round_shows_what_was_seen_said_and_asked(party: Store, asked: AskResult) -> None:
    page = open_page("trajectory", trajectory=asked.trajectory_id, round=2)
    shown = words(page)
    assert "Round 2: searched" in shown
    assert "2:3" in shown
    for part in HarnessPart:
        assert part.value in shown
    assert "tokens in" in shown
    assert "tokens went in" in shown
    assert any("Search once, or answer" in code.value for code in page.code)
    assert "Traceback" not in shown
    assert not page.json


def tagged(request: dict[str, Any]) -> Any:
    """A model that writes people's tags wherever it can."""
    made = searching(request)
    match purpose_of(request):
        case "plan":
            return {"subtasks": [{"text": f"{n} of <face_1> and <voice_2>"} for n in range(2)]}
        case "act":
            return made | {"query": f"{made['query']} <face_1>", "reason": "for <voice_2>"}
        case "conclude":
            return made | {"answer": "<voice_2> plays"}
    return made


def test_no_page_of_a_search_shows_a_tag(party: Store) -> None:
    with OpenAIServer(tagged) as server:
        made = ask(party, LlmToolbox(server), PLAY)
    shown = words(open_page("ask", trajectory=made.trajectory_id))
    for number in range(made.rounds + 1):
        page = open_page("trajectory", trajectory=made.trajectory_id, round=number)
        shown += words(press(page, "Next") if number == 0 else page)
    assert "unnamed person" in shown
    assert [line for line in shown.splitlines() if TAG.search(line)] == []


def test_calls_have_their_words_also_where_a_fork_took_them_over(
    party: Store, asked: AskResult, server: OpenAIServer
) -> None:
    made = fork(party, LlmToolbox(server), asked.trajectory_id, 2, ForkEdit())
    for name in (asked.trajectory_id, made.trajectory_id):
        (plan,) = calls_in_round(party, load_history(party, name), 0)
        assert "what Bob plays" in plan.reply
        assert any("What does Bob play" in sent for _role, sent in plan.messages)


def test_a_replay_is_the_same(party: Store, asked: AskResult) -> None:
    page = press(open_page("trajectory", trajectory=asked.trajectory_id), "Replay")
    assert "Replay matches exactly" in page.success[0].value


def fork_form(page: AppTest, query: str) -> AppTest:
    next(one for one in page.text_input if one.label == "Query").input(query)
    next(b for b in page.button if b.label == "Fork").click().run()
    assert not page.exception
    return page


def test_a_fork_with_another_query_can_be_compared(party: Store, asked: AskResult) -> None:
    page = open_page("trajectory", trajectory=asked.trajectory_id, round=2)
    fork_form(page, "somebody washes the plates")
    assert "The fork has started" in words(page)
    (branch,) = set(trajectories(party)) - {asked.trajectory_id}
    assert wait_for(party, branch) == "done"
    again = open_page("trajectory", trajectory=branch, round=2)
    assert "somebody washes the plates" in words(again)
    for page in (again, open_page("history")):
        assert "Forked from an earlier search at round 2: query changed" in words(page)
        assert "Compare" in [str(one.proto.label) for one in page.main.get("page_link")]
    beside = open_page("trajectory", trajectory=asked.trajectory_id, with_=branch)
    assert "They differ from round 2 on." in words(beside)
    (other,) = [box for box in beside.selectbox if box.label == "The other search"]
    assert other.options[0].endswith("forked at round 2: query changed)")
    assert branch not in words(beside)
    assert "somebody washes the plates" in words(beside)


class Loads(HTMLParser):
    """Everything that a page would fetch or run, and how its tags nest."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = [value or "" for name, value in attrs if name in ("src", "href")]
        self.found += [v for v in values if not v.startswith(("data:image/jpeg", "#round-"))]
        self.found += [tag] if tag in ("script", "link", "iframe") else []
        self.found += [name for name, _ in attrs if name.startswith("on")]
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_exported_page_has_all_and_fetches_nothing(party: Store, server: OpenAIServer) -> None:
    made = ask(party, LlmToolbox(server), Question(text=f"{EVIL} {RTL}", videos=(PARTY,)))
    page = render_page(party, load_history(party, made.trajectory_id))
    seen = Loads()
    seen.feed(page)
    assert (seen.found, seen.open) == ([], [])
    assert "<img src=x" not in page
    assert "&lt;img src=x" in page
    assert "Round 1" in page
    assert "$" not in page.replace("$x$", "")


def test_the_export_can_be_downloaded(party: Store, asked: AskResult) -> None:
    page = press(open_page("trajectory", trajectory=asked.trajectory_id), "Make the page")
    assert len(page.get("download_button")) == 1


def test_a_run_that_was_broken_off_can_be_gone_on_with(party: Store) -> None:
    from store.queries.clips import memory_view

    with party.begin() as session:
        add_trajectory(session, "a" * 16, PLAY, memory_view(session, [PARTY]), "homer", "local")
    page = open_page("trajectory", trajectory="a" * 16)
    assert "was interrupted" in page.warning[0].value
    press(page, "Resume the search")
    assert wait_for(party, "a" * 16) == "done"
    assert "Answer:" in words(open_page("trajectory", trajectory="a" * 16))
