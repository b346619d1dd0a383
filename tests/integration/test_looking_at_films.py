"""Twenty questions about what two films show and nobody says, to a model that really sees."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from domain.asking import Question
from domain.settings import Settings
from domain.time import TimeSpan
from flows.ingest_files import watch_files
from flows.ingest_steps import SilentListener
from flows.workspace import Workspace
from graphs.ask import ask
from graphs.replay import replay
from models.profile import ChatSpec, Profile
from models.toolbox import Toolbox
from store.database import Store
from store.home import Home
from tests.conftest import WEIGHTS
from tests.support.openai_server import OpenAIServer
from tests.support.picture_cards import Card, jpeg, make_slides
from tests.support.seeing_model import (
    Eyes,
    Image,
    SeeingModel,
    dropped,
    foreign,
    is_right,
    shuffled,
    unnamed,
    with_images,
)

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]

CLIP_S = 4
FIRST = (
    Card("red", "417", "circle"),
    Card("blue", "HARBOUR", "square"),
    Card("green", "862", "triangle"),
    Card("yellow", "LANTERN", "circle"),
    Card("purple", "305", "square"),
    Card("orange", "VIOLIN", "triangle"),
    Card("pink", "779", "circle"),
    Card("brown", "CASTLE", "square"),
    Card("cyan", "146", "triangle"),
    Card("grey", "MEADOW", "circle"),
)
SECOND = (
    Card("grey", "528", "triangle"),
    Card("cyan", "PUZZLE", "circle"),
    Card("brown", "693", "triangle"),
    Card("pink", "TICKET", "square"),
    Card("orange", "254", "circle"),
    Card("purple", "WINTER", "triangle"),
    Card("yellow", "981", "square"),
    Card("green", "BUTTON", "circle"),
    Card("blue", "370", "triangle"),
    Card("red", "SILVER", "square"),
)
OTHERS = [jpeg(Card("grey", "ELSEWHERE", "")), jpeg(Card("cyan", "0000", ""))]
Asking = tuple[str, str, TimeSpan]


def questions(cards: tuple[Card, ...]) -> list[Asking]:
    """A question about each card, with its answer and when it is shown."""
    made = []
    for number, card in enumerate(cards):
        start = number * CLIP_S * 1000
        kind = "number" if card.text.isdigit() else "word"
        text, answer = (
            (f"Which {kind} is on the {card.colour} card?", card.text),
            (f"What colour is the card with the {kind} {card.text}?", card.colour),
            (f"Which shape is on the {card.colour} card?", card.shape),
            (f"Which shape is on the card with the {kind} {card.text}?", card.shape),
            (f"Which {kind} is on the card at 00:{number * CLIP_S + 2:02d}?", card.text),
        )[number % 5]
        made.append((text, answer, TimeSpan.of(start, start + CLIP_S * 1000)))
    return made


@pytest.fixture
def recordings(
    home: Home, store: Store, toolbox: Toolbox, tmp_path: Path
) -> list[tuple[str, Asking]]:
    """Both films, watched by the local profile; the questions, each with its film."""
    small = {"clip_ms": CLIP_S * 1000, "sample_fps": 2.0, "keyframes": 1}
    watch = toolbox.profile.settings.watch.model_copy(update=small)
    settings = toolbox.profile.settings.model_copy(update={"watch": watch})
    profile = toolbox.profile.model_copy(update={"settings": settings})
    paths = [
        make_slides(tmp_path / f"{name}.mp4", list(cards), CLIP_S)
        for name, cards in (("first", FIRST), ("second", SECOND))
    ]
    workspace = Workspace(home, store, profile, toolbox)
    outcomes = list(watch_files(workspace, paths, SilentListener(), direct=True))
    assert [outcome.exit_code for outcome in outcomes] == [0, 0]
    videos = [outcome.watched.video.id for outcome in outcomes if outcome.watched]
    asked = zip(videos, (FIRST, SECOND), strict=True)
    return [(video, one) for video, cards in asked for one in questions(cards)]


def seeing_toolbox(server: OpenAIServer) -> Toolbox:
    """The local models of searching, and a reasoner that sees."""
    chat = ChatSpec(model="openai:seeing", base_url=server.base_url, retries=0)
    profile = Profile(name="seeing", reasoner="llm", chat={"default": chat}, settings=Settings())
    return Toolbox(profile, WEIGHTS)


def right_answers(store: Store, recordings: list[tuple[str, Asking]], model: Any) -> list[bool]:
    """Ask all questions; return which were answered right, from the right picture."""
    right = []
    with OpenAIServer(model) as server:
        tools = seeing_toolbox(server)
        for video, (text, value, span) in recordings:
            made = ask(store, tools, Question(text=text, videos=(video,)))
            right.append(is_right(made, value, span))
            calls = len(server.requests)
            assert replay(store, made.trajectory_id).whole
            assert len(server.requests) == calls
    return right


def test_a_model_that_sees_is_right_about_pictures_and_only_with_the_pictures_and_their_refs(
    store: Store, toolbox: Toolbox, recordings: list[tuple[str, Asking]]
) -> None:
    eyes = Eyes(toolbox.screen, toolbox.objects, toolbox.faces)
    right = right_answers(store, recordings, SeeingModel(eyes))
    assert len(right) == 20
    assert sum(right) >= 18
    changes: list[Callable[[list[Image]], list[Image]]] = [
        *(shuffled, dropped, unnamed),
        partial(foreign, OTHERS),
    ]
    for change in changes:
        model = SeeingModel(eyes, partial(with_images, change=change))
        assert sum(right_answers(store, recordings, model)) == 0
