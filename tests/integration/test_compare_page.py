"""The page Compare: one question by several strategies, and where they part."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from domain.asking import Question
from graphs.concurrent import BackgroundRuns
from graphs.runner import Runner
from store.database import Store
from store.queries.trajectories import list_trajectories
from strategies.registry import all_strategies, strategy_names
from tests.support.app_pages import EVIL, app_over, open_page, press, words
from tests.support.asking import PARTY, WordToolbox, remember_party
from tests.support.caption_evaluations import build_all
from tests.support.library_templates import FilledLibraries
from ui.app_state import page_state

PLAY = Question(text="What does Bob play on the piano?", videos=(PARTY,))


@pytest.fixture
def party(
    store: Store, libraries: FilledLibraries, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Store]:
    libraries.fill(store, remember_and_build)
    with app_over(store, monkeypatch):
        yield store


def remember_and_build(store: Store) -> None:
    """The party, with the memory of every strategy that keeps one."""
    remember_party(store)
    build_all(store, PARTY, *all_strategies())


def asked(store: Store, question: Question = PLAY) -> list[str]:
    with Runner(store, WordToolbox()) as runner:
        return [runner.ask(question, strategy=name).trajectory_id for name in strategy_names()]


def test_a_question_is_asked_by_every_strategy_that_is_chosen(party: Store) -> None:
    page = open_page("compare")
    page.text_input[0].set_value(PLAY.text)
    page = press(page, "Compare")
    with party.begin() as session:
        rows = list_trajectories(session)
    assert {row.machine for row in rows} == set(strategy_names())
    runs: BackgroundRuns = page_state().runs
    for row in rows:
        runs.wait(row.id, 60)
    assert sorted(page.query_params["trajectory"]) == sorted(row.id for row in rows)
    shown = words(page.run())
    assert all(name in shown for name in strategy_names())


def test_a_question_that_cannot_be_asked_says_why(party: Store) -> None:
    assert "Write a question first" in words(press(open_page("compare"), "Compare"))
    page = open_page("compare")
    page.text_input[0].set_value("Who?")
    page.multiselect[1].set_value([])
    assert "Choose at least one strategy" in words(press(page, "Compare"))


def test_words_of_a_question_are_never_markup(party: Store) -> None:
    page = open_page("compare")
    page.query_params["trajectory"] = asked(party, Question(text=EVIL, videos=(PARTY,)))
    page.run()
    assert not any("<img" in str(one.value).replace("\\<", "") for one in page.markdown)
