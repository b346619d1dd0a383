"""Twenty questions about what two films show and nobody says, asked of a model that really sees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from domain.asking import Question
from domain.settings import Settings
from domain.time import TimeSpan
from flows.watching import SilentListener, watch_files
from flows.workspace import Workspace
from graphs.replay import replay
from models.profile import Profile
from models.specs import ChatSpec
from models.toolbox import Toolbox
from store.database import Store
from store.home import Home
from tests.support.openai_server import OpenAIServer
from tests.support.picture_cards import Card, jpeg, make_slides
from tests.support.runs import ask
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
CHANGES: dict[str, Callable[[list[Image]], list[Image]]] = {
    "with the labels shuffled": shuffled,
    "without images": dropped,
    "without labels": unnamed,
    "with images of another film": partial(foreign, OTHERS),
}
"""What is done to the images of each request, by what is said of it."""


@dataclass(frozen=True)
class FilmQuestion:
    """A question about what a film shows, with its answer and when that is shown."""

    video: str
    text: str
    value: str
    span: TimeSpan


@dataclass(frozen=True)
class FilmAnswers:
    """How many questions were answered right, from the right image, and replayed without a call."""

    asked: int
    right: int
    replayed: int


def questions(video: str, cards: Sequence[Card]) -> list[FilmQuestion]:
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
        made.append(FilmQuestion(video, text, answer, TimeSpan.of(start, start + CLIP_S * 1000)))
    return made


def watch_films(home: Home, store: Store, toolbox: Toolbox, folder: Path) -> list[FilmQuestion]:
    """Make both films in a folder and watch them with these models; return their questions."""
    small = {"clip_ms": CLIP_S * 1000, "sample_fps": 2.0, "keyframes": 1}
    watch = toolbox.profile.settings.watch.model_copy(update=small)
    settings = toolbox.profile.settings.model_copy(update={"watch": watch})
    profile = toolbox.profile.model_copy(update={"settings": settings})
    workspace = Workspace(home, store, profile, toolbox)
    made: list[FilmQuestion] = []
    for name, cards in (("first", FIRST), ("second", SECOND)):
        path = make_slides(folder / f"{name}.mp4", list(cards), CLIP_S)
        (outcome,) = watch_files(workspace, [path], SilentListener(), direct=True)
        made += questions(outcome.video, cards)
    return made


def ask_about_films(
    store: Store,
    weights: Path,
    eyes: Eyes,
    asked: Sequence[FilmQuestion],
    change: Callable[[list[Image]], list[Image]] | None = None,
) -> FilmAnswers:
    """Ask all questions of a model that sees, and replay each answer.

    Args:
        store: has the films.
        weights: of the local models that search.
        eyes: look at the images.
        asked: the questions.
        change: what is done to the images of each request before they are looked at.
    """
    right = replayed = 0
    model = SeeingModel(eyes, change and partial(with_images, change=change))
    with OpenAIServer(model) as server:
        chat = ChatSpec(model="openai:seeing", base_url=server.base_url, retries=0)
        profile = Profile(
            name="seeing", reasoner="llm", chat={"default": chat}, settings=Settings()
        )
        tools = Toolbox(profile, weights)
        for one in asked:
            made = ask(store, tools, Question(text=one.text, videos=(one.video,)))
            right += is_right(made, one.value, one.span)
            calls = len(server.requests)
            again = replay(store, made.trajectory_id)
            replayed += again.whole and len(server.requests) == calls
    return FilmAnswers(len(asked), right, replayed)
