"""Questions that are suggested of a video, from what is remembered of it."""

from __future__ import annotations

import pytest

from domain.moments import Event
from domain.time import TimeSpan
from library import memory
from library.memory import suggested_questions
from store.database import Store
from tests.support.app_pages import app_over, open_page, open_page_in, output, press, words
from tests.support.asking import PARTY
from ui.app_state import page_state


def test_what_happens_in_event_is_asked_and_nothing_of_a_video_without_memory(party: Store) -> None:
    texts = [one.text for one in suggested_questions(party, [PARTY], per_video=9)]
    assert "What happens in \u201carrival in the garden\u201d?" in texts
    assert len(texts) == len(set(texts))
    assert suggested_questions(party, []) == []


def segment(label: str, summary: str) -> Event:
    return Event(ref="s1", span=TimeSpan.of(0, 1_000), clips=(0,), label=label, text=summary)


@pytest.mark.parametrize(
    ("label", "summary", "text"),
    [
        ("Presents, Customers", "On screen: Presents. Ann: our customers.", "customers"),
        ("Fed, policy", "Ann: the Fed has a policy.", "policy"),
    ],
)
def test_list_of_words_is_asked_about_by_a_spoken_one(label: str, summary: str, text: str) -> None:
    assert list(memory._about(segment(label, summary))) == [f"What is said about {text}?"]


@pytest.mark.parametrize("label", ["", "<voice_1> waits", "EAR, ACmal", "long " * 20])
def test_what_would_make_a_bad_question_makes_none(label: str) -> None:
    assert list(memory._about(segment(label, "On screen: EAR / ACmal"))) == []


def test_a_german_suggestion_is_asked_in_english(
    party: Store, monkeypatch: pytest.MonkeyPatch, in_german: None
) -> None:
    with app_over(party, monkeypatch):
        page = open_page_in("de", "ask")
        shown = next(one for one in page.button if one.label.startswith("Was geschieht in"))
        assert "Auf Englisch gestellt: What happens in" in shown.help.replace("\\", "")
        shown.click().run()
        name = output(page, "trajectory")
        page_state().runs.wait(name, 60)
        assert "What happens in \u201c" in words(page.run())


def test_a_press_on_a_suggestion_asks_it(party: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with app_over(party, monkeypatch):
        page = open_page("ask")
        label = next(button.label for button in page.button if "What happens in" in button.label)
        press(page, label.replace("\\", ""))
        name = output(page, "trajectory")
        page_state().runs.wait(name, 60)
        assert "What happens in" in words(page.run())
