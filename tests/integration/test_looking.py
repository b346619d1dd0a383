"""Pictures count: a model that sees is shown them with their refs, and what it sees is evidence."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import typer
from sqlalchemy import select
from typer.testing import CliRunner

from cli.main import app
from domain.asking import Question
from domain.time import TimeSpan
from domain.trajectory import Bound, Event, EvidenceRetrieved, ImagesSeen
from graphs.ask_result import AskResult
from store.database import Store
from store.tables.schema import KeyframeRow
from tests.support.asking import PARTY
from tests.support.full_suite import in_full, sample
from tests.support.listeners import collect_events
from tests.support.obedient_model import LlmToolbox, purpose_of, texts_of
from tests.support.openai_server import Answer, OpenAIServer
from tests.support.picture_cards import Card, jpeg
from tests.support.remembered import Event as Segment
from tests.support.remembered import Said, add_event_graph, recording, watch
from tests.support.runs import ask, of
from tests.support.seeing_model import (
    Eyes,
    Image,
    Request,
    SeeingModel,
    dropped,
    foreign,
    images_of,
    is_right,
    shuffled,
    unnamed,
    with_images,
)

CARDS = {
    4: Card("red", "417", "circle"),
    14: Card("blue", "HARBOUR", "square"),
    34: Card("green", "862", "triangle"),
    44: Card("yellow", "LANTERN", "circle"),
}
OTHERS = (jpeg(Card("pink", "VIOLIN", "square")), jpeg(Card("brown", "555", "circle")))
QUESTIONS = (
    ("Which number is on the red card?", "417", 4),
    ("What colour is the card with the word LANTERN?", "yellow", 44),
    ("Which shape is on the green card?", "triangle", 34),
    ("Which word is on the card with the square?", "HARBOUR", 14),
)


def shown(store: Store) -> None:
    """Two clips of talk about something else, and four pictures of which no word was read."""
    watch(store, PARTY, [[Said("Well, let us begin", 2)], [Said("Thank you for coming", 3)]])
    recording(store, PARTY, [float(second) for second in CARDS])
    with store.begin() as session:
        for row in session.scalars(select(KeyframeRow)):
            row.blob = store.blobs.put(jpeg(CARDS[row.time_ms // 1000]))


@pytest.fixture
def slides(store: Store) -> Store:
    shown(store)
    return store


def asked(
    store: Store, script: Callable[[Request], Any], text: str, **spec: Any
) -> tuple[AskResult, list[Event], OpenAIServer]:
    events: list[Event] = []
    question = Question(text=text, videos=(PARTY,))
    with OpenAIServer(script) as server:
        made = ask(store, LlmToolbox(server, **spec), question, collect_events(events))
    return made, events, server


def instant(second: int) -> TimeSpan:
    return TimeSpan.of(second * 1000, second * 1000 + 1)


@pytest.mark.parametrize(("text", "value", "second"), sample(QUESTIONS[:1], QUESTIONS))
def test_a_model_that_sees_answers_from_pictures_that_no_word_is_near(
    slides: Store, eyes: Eyes, text: str, value: str, second: int
) -> None:
    made, events, _ = asked(slides, SeeingModel(eyes), text)
    assert of(events, EvidenceRetrieved)[0].nothing_close
    assert is_right(made, value, instant(second))
    (citation,) = made.answer.citations
    assert f"a {CARDS[second].colour} card" in citation.seen
    assert citation.full_text.startswith("seen on it: a ")


@pytest.mark.parametrize(
    "sabotage",
    [shuffled, *map(in_full, [dropped, unnamed, partial(foreign, OTHERS)])],
    ids=["shuffled", "dropped", "unnamed", "foreign"],
)
def test_with_other_images_or_labels_no_answer_is_right(
    slides: Store, eyes: Eyes, sabotage: Callable[[list[Image]], list[Image]]
) -> None:
    model = SeeingModel(eyes, lambda request: with_images(request, sabotage))
    right = [is_right(asked(slides, model, t)[0], value, instant(at)) for t, value, at in QUESTIONS]
    assert right == [False] * len(QUESTIONS)


def test_every_image_comes_after_its_ref_and_time_in_every_step(slides: Store, eyes: Eyes) -> None:
    made, events, server = asked(slides, SeeingModel(eyes), QUESTIONS[0][0])
    times = {e.ref: e.span.start_ms for e in of(events, EvidenceRetrieved)[0].evidence}
    for purpose in ("assess", "conclude"):
        images = images_of(next(r for r in server.requests if purpose_of(r) == purpose))
        assert images
        for image in images:
            assert image.time_ms == times[image.ref]
            assert image.data == jpeg(CARDS[times[image.ref] // 1000])
    assert made.answer.citations


def test_model_without_eyes_sees_nothing_where_nothing_is_close(slides: Store, eyes: Eyes) -> None:
    made, events, _ = asked(slides, SeeingModel(eyes), QUESTIONS[0][0], images=False)
    assert made.answer.not_in_memory
    assert not of(events, ImagesSeen)


def test_what_is_seen_is_on_record_in_ledger_and_on_later_cards(slides: Store, eyes: Eyes) -> None:
    def unsure(request: Request) -> Any:
        made = SeeingModel(eyes)(request)
        return made | ({"resolved": []} if purpose_of(request) == "assess" else {})

    made, events, server = asked(slides, unsure, QUESTIONS[0][0])
    (look, *_), (bound, *_) = of(events, ImagesSeen), of(events, Bound)
    assert set(bound.refs) == {one.ref for one in look.seen} == set(look.shown)
    later = [r for r in server.requests if purpose_of(r) == "act"][1]
    (card,) = [text for text in texts_of(later) if text.startswith("<card")]
    assert "seen on it: a red card with a circle and 417 printed on it" in card
    assert is_right(made, "417", instant(4))


def test_only_what_was_shown_can_be_seen_and_it_has_a_limit(slides: Store, eyes: Eyes) -> None:
    def boasting(request: Request) -> Any:
        made = SeeingModel(eyes)(request)
        if purpose_of(request) != "assess":
            return made
        seen = [
            {"image": "k4711", "text": "a dragon"},
            {"image": made["seen"][0]["image"], "text": "<card> [m1] " + "very long " * 900},
            {"image": "the last one", "text": "a door"},
        ]
        return made | {"seen": seen}

    _, events, _ = asked(slides, boasting, QUESTIONS[0][0])
    look = of(events, ImagesSeen)[0]
    (one,) = look.seen
    assert look.refused == ("k4711 was not among the images that were shown",)
    assert len(one.text) <= 240
    assert "<" not in one.text
    assert "[" not in one.text


def test_a_second_look_at_the_images_sees_others_first(slides: Store, eyes: Eyes) -> None:
    _, events, _ = asked(
        slides, SeeingModel(eyes), "Which number is on the cyan card?", ask={"images": 2}
    )
    first, second = [e.images for e in of(events, EvidenceRetrieved)][:2]
    assert len({*first, *second}) == 4


def test_images_outside_focus_are_shown_once_those_in_it_were(slides: Store, eyes: Eyes) -> None:
    add_event_graph(slides, PARTY, [Segment(0, "the beginning", "They begin to talk.", (0,), 1)])
    made, events, _ = asked(slides, SeeingModel(eyes), QUESTIONS[2][0])
    first, second = [e.evidence for e in of(events, EvidenceRetrieved)][:2]
    assert ({e.clip for e in first}, {e.clip for e in second[:2]}) == ({0}, {1})
    assert is_right(made, "triangle", instant(34))


def counting(model: SeeingModel) -> Callable[[Request], Answer]:
    """The model behind a server that counts what is read, images too."""

    def answer(request: Request) -> Answer:
        read = sum(map(len, texts_of(request))) // 4 + 1_100 * len(images_of(request))
        return Answer(model(request), tokens=(read, 50))

    return answer


@pytest.mark.parametrize(
    ("tokens", "again"), sample([(50_000, 1)], [(200_000, 4), (50_000, 1), (20_000, 0)])
)
def test_the_next_step_is_shown_as_many_of_the_images_as_the_budget_allows(
    slides: Store, eyes: Eyes, tokens: int, again: int
) -> None:
    text, budget = "Which number is on the cyan card?", {"tokens": tokens, "rounds": 2}
    _, _, server = asked(slides, counting(SeeingModel(eyes)), text, ask=budget)
    first, second = [r for r in server.requests if purpose_of(r) == "act"]
    assert (images_of(first), len(images_of(second))) == ([], again)
    shown = images_of(next(r for r in server.requests if purpose_of(r) == "assess"))
    assert images_of(second) == shown[:again]


def test_a_command_shows_sights(slides: Store, eyes: Eyes, monkeypatch: pytest.MonkeyPatch) -> None:
    made, _, _ = asked(slides, SeeingModel(eyes), QUESTIONS[0][0])
    monkeypatch.setenv("HOMER_DATABASE_URL", slides.url)
    output = CliRunner().invoke(app, ["trajectory", made.trajectory_id])
    assert "seen on it: a red card with a circle and 417 printed on it" in output.stdout
    output = CliRunner().invoke(
        app, ["trajectory", "events", made.trajectory_id, "--limit", "100", "--json"]
    )
    assert "look" in [event["kind"] for event in json.loads(output.stdout)]


@pytest.mark.parametrize("opens", [True, in_full(False)])
def test_the_command_opens_what_an_answer_cites(
    slides: Store, eyes: Eyes, monkeypatch: pytest.MonkeyPatch, opens: bool
) -> None:
    made, _, _ = asked(slides, SeeingModel(eyes), QUESTIONS[3][0])
    opened: list[bytes] = []

    def launch(file: str) -> int:
        opened.append(Path(file).read_bytes())
        return 0 if opens else 1

    monkeypatch.setattr(typer, "launch", launch)
    monkeypatch.setenv("HOMER_DATABASE_URL", slides.url)
    output = CliRunner().invoke(app, ["resume", made.trajectory_id, "--open", "-p", "local"])
    assert output.exit_code == 0, output.stderr
    assert opened == [jpeg(CARDS[14])]
    assert ("no program opened the images" in output.stderr) is not opens
