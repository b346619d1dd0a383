"""WorldMM's visual memory: kept frames found by time and by words, and looked at by a model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agent.strategy import ToolUse
from domain.asking import Question
from domain.errors import InputError
from domain.memories import MemoryView, Scope
from domain.moments import Retrieval
from domain.time import TimeSpan
from domain.trajectory import Ended, Event, EvidenceRetrieved, Guarded
from graphs.ask_result import AskResult
from graphs.replay import replay
from graphs.runner import Runner
from models.image_text import ImageTextEncoder
from models.toolbox import Toolbox
from store.database import Store
from store.tables.schema import FrameRow
from strategies.registry import find_strategy
from strategies.worldmm.settings import VisualArguments
from tests.support.asking import PARTY, WordToolbox
from tests.support.caption_evaluations import build_all
from tests.support.full_suite import sample
from tests.support.library_templates import FilledLibraries
from tests.support.listeners import collect_events
from tests.support.obedient_model import LlmToolbox, texts_of
from tests.support.openai_server import OpenAIServer
from tests.support.picture_cards import COLOURS, Card, jpeg
from tests.support.prompted_models import WorldModel, answering
from tests.support.remembered import Said, recording, watch
from tests.support.seeing_model import Eyes, Request, SeeingWorldModel, images_of, is_right
from tests.support.tiny_image_encoder import towers

CARDS = {
    5: Card("red", "417", "circle"),
    15: Card("blue", "HARBOUR", "square"),
    35: Card("green", "862", "triangle"),
    45: Card("yellow", "LANTERN", "circle"),
}
QUESTIONS = (
    ("Which number is on the red card?", ("00:00 - 00:20",), "417", 5),
    ("Which word is on the card with the square?", ("00:40 - 00:50", "00:12"), "HARBOUR", 15),
    ("Which shape is on the green card?", ("00:30 - 00:50",), "triangle", 35),
)


@pytest.fixture
def cards(store: Store, libraries: FilledLibraries) -> Store:
    libraries.fill(store, keep_cards)
    return store


def keep_cards(store: Store) -> None:
    """Two clips of talk about something else, and four kept frames."""
    watch(store, PARTY, [[Said("Ann begins", 2)], [Said("Bob thanks Ann", 3)]])
    build_all(store, PARTY, find_strategy("worldmm"))
    keep(store, {second: jpeg(card) for second, card in CARDS.items()})


def keep(store: Store, images: dict[int, bytes], **more: Any) -> None:
    fields: dict[str, Any] = {"video_id": PARTY, "builder": "worldmm", "tier": 0, "reason": "so"}
    with store.begin() as session:
        for second, image in images.items():
            place = {"clip": second // 30, "time_ms": 1000 * second, "width": 4, "height": 3}
            session.add(FrameRow(blob=store.blobs.put(image), **fields | place | more))


def view(last_clip: int = 1, *videos: str) -> MemoryView:
    scopes = (Scope(video=one, last_clip=last_clip) for one in (PARTY, *videos))
    return MemoryView(scopes=tuple(scopes))


def use(
    store: Store, toolbox: Toolbox, query: str, within: MemoryView | None = None, **more: Any
) -> Retrieval:
    tools = find_strategy("worldmm").open_tools(store, toolbox)
    return tools["visual"](within or view(), VisualArguments(query=query), ToolUse(**more))


def seconds(found: Retrieval) -> list[int]:
    return [image.time_ms // 1000 for image in found.images]


class EncoderToolbox(WordToolbox):
    """Words, and an image-text model that knows red, green and blue."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.profile = self.profile.model_copy(update={"images": f"clip:{folder}"})


@pytest.fixture
def encoding(tmp_path: Path) -> EncoderToolbox:
    return EncoderToolbox(towers(tmp_path / "towers"))


def test_frames_of_a_time_are_found_in_its_order_with_what_was_recognised(cards: Store) -> None:
    recording(cards, PARTY, [15.4], {15.4: "EXIT"}, {15.4: ["dog"]})
    found = use(cards, WordToolbox(), "00:10 - 00:40")
    assert seconds(found) == [15, 35]
    assert not found.nothing_close
    assert {piece.score for piece in found.evidence} == {1.0}
    assert [piece.ref for piece in found.evidence] == [image.ref for image in found.images]
    assert [piece.span for piece in found.evidence] == [
        TimeSpan.of(1000 * at, 1000 * at + 1000) for at in (15, 35)
    ]
    assert all(image.ref.startswith("f") for image in found.images)
    assert [cards.blobs.get(image.blob) for image in found.images] == [
        jpeg(CARDS[15]),
        jpeg(CARDS[35]),
    ]
    assert "EXIT" in found.evidence[0].text
    assert "dog" in found.evidence[0].text
    assert found.evidence[1].text == "nothing was recognised on it"


def test_of_many_frames_as_many_as_are_shown_at_once_are_evenly_spread(cards: Store) -> None:
    keep(cards, dict.fromkeys(range(100, 150), b"x"), clip=1)
    found = use(cards, WordToolbox(), "01:40 - 02:30")
    assert seconds(found) == [100, 110, 120, 130, 140]
    seen = frozenset(image.ref for image in found.images)
    again = use(cards, WordToolbox(), "01:40 - 02:30", seen=seen)
    assert not {image.ref for image in again.images} & seen


def test_only_own_frames_of_what_may_be_seen_are_found(cards: Store) -> None:
    keep(cards, {7: b"x"}, builder="another")
    whole = "00:00 - 59:00"
    assert seconds(use(cards, WordToolbox(), whole)) == [5, 15, 35, 45]
    assert seconds(use(cards, WordToolbox(), whole, view(0))) == [5, 15]
    watch(cards, "1234" * 4, [[Said("Well", 4)]])
    with pytest.raises(InputError, match="a video's own"):
        use(cards, WordToolbox(), whole, view(1, "1234" * 4))
    other = MemoryView(scopes=(Scope(video="1234" * 4, last_clip=1),))
    with pytest.raises(InputError, match="no frame of 1234123412341234 was kept"):
        use(cards, WordToolbox(), whole, other)


def test_with_such_model_frames_are_found_by_sight(cards: Store, encoding: EncoderToolbox) -> None:
    encoder = encoding.images
    assert isinstance(encoder, ImageTextEncoder)
    for second, colour in ((60, "green"), (70, "blue"), (80, "red")):
        (vector,) = encoder.images([np.full((8, 8, 3), COLOURS[colour], np.uint8)])
        made = {"embedding": vector.tolist(), "image_encoder": encoder.name, "clip": 1}
        keep(cards, {second: b"x"}, **made)
    keep(cards, {90: b"x"}, embedding=[1.0] * 5, image_encoder="another", clip=1)
    found = use(cards, encoding, "red")
    assert seconds(found)[0] == 80
    assert 90 not in seconds(found)
    assert found.evidence[0].score > found.evidence[1].score
    assert encoder.name in found.searched
    assert seconds(use(cards, encoding, "a blue thing"))[0] == 70
    assert seconds(use(cards, encoding, "red", seen=frozenset({found.images[0].ref})))[0] != 80


def test_mode_that_profile_or_memory_lacks_says_so(cards: Store, encoding: EncoderToolbox) -> None:
    with pytest.raises(InputError, match="no image-text model: name a stretch of time"):
        use(cards, WordToolbox(), "the red card")
    with pytest.raises(InputError, match=r"were kept without \w.*: name a stretch of time"):
        use(cards, encoding, "the red card")


def asked(
    store: Store,
    script: Callable[[Request], Any],
    text: str,
    strategy: str = "worldmm",
    toolbox: Callable[[OpenAIServer], Toolbox] = LlmToolbox,
) -> tuple[AskResult, list[Event], list[Request]]:
    events: list[Event] = []
    question = Question(text=text, videos=(PARTY,))
    with OpenAIServer(script) as server, Runner(store, toolbox(server)) as runner:
        made = runner.ask(question, collect_events(events), strategy=strategy)
        requests = list(server.requests)
    assert replay(store, made.trajectory_id).divergence is None
    return made, events, requests


def searches(events: list[Event]) -> list[EvidenceRetrieved]:
    return [event for event in events if isinstance(event, EvidenceRetrieved)]


@pytest.mark.parametrize(("text", "queries", "value", "second"), sample(QUESTIONS[:1], QUESTIONS))
def test_a_model_that_sees_answers_from_frames_that_no_word_is_near(
    cards: Store, eyes: Eyes, text: str, queries: tuple[str, ...], value: str, second: int
) -> None:
    made, events, _ = asked(cards, SeeingWorldModel(eyes, queries), text)
    assert is_right(made, value, TimeSpan.of(1000 * second, 1000 * second + 1))
    assert [(one.mode, one.query) for one in searches(events)] == [("visual", q) for q in queries]


def test_both_steps_are_shown_frames_after_refs_and_times(cards: Store, eyes: Eyes) -> None:
    text, queries, _, _ = QUESTIONS[1]
    _, events, requests = asked(cards, SeeingWorldModel(eyes, queries), text)
    first, second = searches(events)
    times = {e.ref: e.span.start_ms // 1000 for one in (first, second) for e in one.evidence}
    shown = {
        purpose: [images_of(r) for r in requests if WorldModel.purpose(r) == purpose]
        for purpose in ("decide", "respond")
    }
    assert [[image.time_ms for image in images] for images in shown["decide"]] == [
        [],
        [45_000],
        [5_000, 15_000, 45_000],
    ]
    assert [[image.time_ms for image in images] for images in shown["respond"]] == [
        [5_000, 15_000, 45_000]
    ]
    for image in (i for lists in shown.values() for images in lists for i in images):
        assert image.data == jpeg(CARDS[times[image.ref]])
        assert image.time_ms == 1000 * times[image.ref]
    (respond,) = [r for r in requests if WorldModel.purpose(r) == "respond"]
    assert "Cite the image by that id" in texts_of(respond)[0]


def test_only_what_the_profile_can_do_is_offered(cards: Store, encoding: EncoderToolbox) -> None:
    def offered(toolbox: Callable[[OpenAIServer], Toolbox], name: str = "worldmm") -> list[str]:
        made, _, requests = asked(cards, WorldModel(), "Who begins?", name, toolbox)
        rules = next(texts_of(r)[0] for r in requests if WorldModel.purpose(r) == "decide")
        line = next((one for one in rules.splitlines() if one.startswith("- visual:")), "")
        return [line, made.answer.note]

    line, note = offered(LlmToolbox)
    assert "stretch of time" in line
    assert "in words what they show" not in line
    assert "by time only" in note
    line, note = offered(lambda server: LlmToolbox(server, images=False))
    assert line == ""
    assert "does not see" in note

    def with_encoder(server: OpenAIServer) -> Toolbox:
        toolbox = LlmToolbox(server)
        toolbox.profile = toolbox.profile.model_copy(update={"images": encoding.profile.images})
        return toolbox

    line, note = offered(with_encoder)
    assert "in words what they show" in line
    assert "Images" not in note
    line, note = offered(LlmToolbox, "worldmm-without-visual")
    assert (line, "mages" in note) == ("", False)


def test_words_without_an_image_text_model_are_sent_back_with_the_complaint(cards: Store) -> None:
    decide = [
        {"reason": "so", "action": "search", "memory": "visual", "query": query}
        for query in ("the red card", "00:00 - 00:20")
    ]
    _, events, _ = asked(cards, answering(WorldModel(), decide=decide), "Who begins?")
    refused = [one.complaint for one in events if isinstance(one, Guarded) and not one.accepted]
    assert refused == ["visual takes a stretch of time, as in 12:30 - 12:50"]
    assert [one.query for one in searches(events)] == ["00:00 - 00:20"]


def by_rules(store: Store, text: str, name: str = "worldmm", **more: Any) -> list[Event]:
    events: list[Event] = []
    question = Question(text=text, videos=(PARTY,), **more)
    with Runner(store, WordToolbox()) as runner:
        made = runner.ask(question, collect_events(events), strategy=name)
    assert replay(store, made.trajectory_id).divergence is None
    return events


def test_rules_look_at_images_only_where_an_open_question_names_their_time(cards: Store) -> None:
    recording(cards, PARTY, [15.4], {15.4: "EXIT"})
    events = by_rules(cards, "Which text is on screen at 00:15?")
    assert [one.mode for one in searches(events)] == ["visual", "episodic", "semantic"]
    (answer,) = [one.answer for one in events if isinstance(one, Ended)]
    assert answer is not None
    assert "EXIT" in answer.text
    assert answer.citations[0].ref.startswith("f")
    for text, more, name in (
        ("Who begins?", {}, "worldmm"),
        ("What is there at 00:15?", {"options": ("EXIT", "Ann")}, "worldmm"),
        ("What is there at 00:15?", {}, "worldmm-without-visual"),
    ):
        made = by_rules(cards, text, name, **more)
        assert [one.mode for one in searches(made)] == ["episodic", "semantic"]
