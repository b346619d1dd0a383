"""The evaluations page: runs, one in full with its questions, and two beside each other."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from domain.evaluation import WITH_SKILLS, WITHOUT_SKILLS, Verdict
from evals.plan import start_run
from evals.report import exclusive_run, find_run
from library.evaluations import evaluation_runs
from store.database import Store
from store.queries.evaluations import RUNNING, begin_run, plan_slots, set_run_state
from tests.support.app_pages import (
    EVIL,
    LONG,
    RTL,
    app_over,
    charts,
    open_page,
    output,
    press,
    tables,
    words,
)
from tests.support.evaluation_rows import evaluated, run_settings, slot
from tests.support.library_templates import FilledLibraries
from tests.support.machine import VIDEO, watched
from tests.support.many_answers import a_run, fill_answers
from tests.support.many_runs import fill_run
from ui import evaluations


@pytest.fixture
def library(
    store: Store, libraries: FilledLibraries, monkeypatch: pytest.MonkeyPatch, tampered: None
) -> Iterator[Store]:
    libraries.fill(store, watched)
    with app_over(store, monkeypatch):
        yield store


@pytest.fixture
def runs(library: Store, libraries: FilledLibraries) -> Store:
    libraries.fill(library, evaluate_twice)
    return library


def evaluate_twice(store: Store) -> None:
    """Two runs of forty questions, with and without skills."""
    watched(store)
    fill_answers(store, 170, skills=1)
    fill_run(store, "first", 40)
    fill_run(store, "second", 40, shift=1, first=80)


def cells(page: AppTest) -> str:
    return "\n".join("  ".join(row) for table in tables(page) for row in table)


def links(page: AppTest) -> list[str]:
    """Where the links of a page lead, of those that have a query."""
    return [one.proto.query_string for one in page.main.get("page_link") if one.proto.query_string]


def test_without_runs_an_example_is_shown_that_is_no_run_of_the_library(library: Store) -> None:
    page = open_page("evaluations")
    assert "No evaluation was run yet" in words(page)
    assert "It is no run of your library" in words(page)
    assert any("confidence" in alt and "right" in alt for alt in charts(page))
    assert any("Mean of an answer" in alt for alt in charts(page))
    assert evaluation_runs(library).total == 0
    assert [link for link in links(page) if "trajectory" in link] == []


def test_an_evaluation_that_cannot_start_says_why(library: Store, tmp_path: Path) -> None:
    page = press(open_page("evaluations"), "Evaluate")
    assert "name the folder" in words(page)
    page.text_input[0].input(str(tmp_path / "nowhere"))
    press(page, "Evaluate")
    assert "there is no folder" in words(page)


def test_an_evaluation_is_started_and_its_end_is_told(
    library: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "questions.json").write_text('[{"video": "a.srt", "question": "Who?"}]')
    (tmp_path / "a.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nHi.\n")
    failing = (sys.executable, "-c", "print('homer: the disk is full')")
    monkeypatch.setattr("ui.evaluations.start_run", partial(start_run, command=failing))
    page = open_page("evaluations")
    page.text_input[0].input(str(tmp_path))
    press(page, "Evaluate")
    page.session_state[evaluations.STARTED].process.wait()
    page.run()
    assert "The evaluation ended: the disk is full" in words(page)


def test_runs_are_listed_with_how_far_they_are(runs: Store) -> None:
    shown = words(open_page("evaluations"))
    assert "done, 80 of 80 answers judged, data set houses, models local, protocol online" in shown
    assert "run=second" in links(open_page("evaluations"))


def test_a_run_has_its_tables_and_curves_in_words_too(runs: Store) -> None:
    page = open_page("evaluations", run="first")
    shown = words(page)
    assert "with skills: 80.0 (70-90) % right of 40 judged" in shown
    assert "it learned from the answers to the very questions" in shown
    for heading in ("Answers by type", "Effect of learning", "What an answer takes"):
        assert heading in shown
    assert "Why answers are wrong" in shown
    table = cells(page)
    for part in ("80.0 (70-90)", "event localisation", "p (McNemar)"):
        assert part in table
    evolution, by_type, *_, cost = charts(page)
    assert "without skills 65.0 (52-78) %; with skills 80.0 (70-90) %" in evolution
    assert "who " in by_type
    assert "Mean of an answer: " in cost
    assert evolution in shown
    assert "skill=advice-0" in links(page)


def test_each_question_leads_to_its_trajectory(runs: Store) -> None:
    page = open_page("evaluations", run="first")
    assert f"trajectory={a_run(40)}" in links(page)
    shown = words(page)
    assert "1 to 15 of 80" in shown
    assert "with skills, who, memory absent, skills: advice-0" in shown
    assert "It names Ann." in shown
    last = open_page("evaluations", run="first", questions=6)
    assert "76 to 80 of 80" in words(last)
    assert f"trajectory={a_run(39)}" in links(last)


def test_questions_are_filtered_by_what_the_address_says(runs: Store) -> None:
    page = open_page("evaluations", run="first", arm=WITH_SKILLS, answer="wrong")
    assert "**wrong**: Ann opens door 40." in words(page)
    assert "**right**" not in words(page)
    next(b for b in page.selectbox if b.label == "Fault").set_value("memory coarse").run()
    assert "No question passes these filters" in words(page)
    none = open_page("evaluations", run="first", answer="unjudged")
    assert "No question passes these filters" in words(none)
    typed = words(open_page("evaluations", run="first", arm=WITHOUT_SKILLS, type="why"))
    assert "1 to 13" not in typed
    assert "without skills, why" in typed


def test_two_runs_are_compared_with_the_questions_that_changed(runs: Store) -> None:
    page = open_page("evaluations", run="first")
    next(b for b in page.selectbox if b.label == "The other run").set_value("second").run()
    assert output(page, "with_") == "second"
    shown = words(page)
    for part in ("The same questions in both runs", "right only in second", "wrong only in second"):
        assert part in shown
    assert f"trajectory={a_run(40)}&with_={a_run(120)}" in links(page)
    again = open_page("evaluations", run="first", with_="second")
    assert "right only in second" in words(again)


def test_a_run_that_is_not_there_is_one_message(library: Store) -> None:
    page = open_page("evaluations", run=EVIL)
    assert "there is no run" in page.error[0].value
    assert "All runs" in words(page)


def test_a_run_that_has_only_begun_has_nothing_judged(library: Store) -> None:
    with library.begin() as session:
        begin_run(session, "new", run_settings())
    page = open_page("evaluations", run="new")
    shown = words(page)
    assert "nothing judged yet" in shown
    assert "No question is planned yet" in shown
    assert "There is no other run" in shown
    assert "The run is broken off" in shown
    assert charts(page) == []
    with library.begin() as session:
        plan_slots(session, "new", [slot("q", VIDEO)])
    assert "**not asked yet**: nothing" in words(open_page("evaluations", run="new"))


def test_a_run_that_goes_on_says_so(library: Store) -> None:
    fill_answers(library, 2)
    evaluated(library, a_run(1), VIDEO, "mine")
    with library.begin() as session:
        set_run_state(session, "mine", RUNNING)
    with exclusive_run(library.home, "mine"):
        page = open_page("evaluations", run="mine")
        assert "This run is in progress" in words(page)
        # More is judged: the page is drawn anew with it, not with what it kept.
        evaluated(library, a_run(0), VIDEO, "mine", Verdict(right=False, judge="options"))
        page.run()
        assert "50.0 (0-100) % right of 2 judged" in words(page)
    assert find_run(library, "mine").state == "broken off"


@pytest.mark.parametrize("text", [EVIL, LONG, RTL])
def test_any_words_of_a_question_are_shown_as_words(library: Store, text: str) -> None:
    fill_answers(library, 8)
    fill_run(library, "odd", 4, question=text, answer=text, types=[text])
    page = open_page("evaluations", run="odd")
    assert text[:150] in words(page)
    assert not any(one.allow_html for one in page.markdown)
    assert next(b for b in page.selectbox if b.label == "Type").options == ["all", text]
    assert text[:100] in cells(page)
    assert not any("<img" in str(one.proto.body) for one in page.get("html"))


def test_the_report_is_taken_along(runs: Store) -> None:
    page = press(open_page("evaluations", run="first"), "Make the files")
    names = [one.proto.label for one in page.get("download_button")]
    assert names == ["Download the page", "Download the table"]


def test_an_example_is_offered_beside_runs(runs: Store) -> None:
    assert "example=1" in links(open_page("evaluations"))
    shown = words(open_page("evaluations", example=1))
    assert "It is no run of your library" in shown
    assert "An unnamed speaker: But sometimes full copyright is too restrictive." in shown
    assert "<voice_" not in shown
