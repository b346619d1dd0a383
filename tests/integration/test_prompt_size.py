"""How much a language model is given to read about a video of half an hour."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from domain.asking import Question
from domain.trajectory import Ended, Event, RoundOpened
from store.database import Store
from tests.support.asking import PARTY
from tests.support.listeners import collect_events
from tests.support.obedient_model import LlmToolbox, purpose_of, texts_of
from tests.support.openai_server import Answer, OpenAIServer
from tests.support.remembered import Event as Segment
from tests.support.remembered import Said, add_event_graph, name, watch
from tests.support.runs import ask

CLIPS, LINES, SEGMENTS = 60, 14, 15
CHARS_A_TOKEN = 3.5
"""A model's own tokenizer made one token of 4.6 characters of our prompts; memories have times."""
MOST = 7_000
PLACES = ("garden", "kitchen", "harbour", "market", "station", "library", "bridge", "cellar")
PEOPLE = ("Ann", "Bob", "Cleo", "Dora", "Emil")
LEFT_OUT = "left out here"
MODES = ("event", "video", "video", "keyframe")


def line(clip: int, at: int) -> str:
    who, where = PEOPLE[(clip + at) % 5], PLACES[(clip * 3 + at) % 8]
    return f"{who} tells in the {where} about box {clip * 14 + at} and what had been done with it"


def remember(store: Store) -> None:
    """Half an hour of talk, woven into segments that are joined by edges."""
    watch(store, PARTY, [[Said(line(c, i), 2 * i) for i in range(LINES)] for c in range(CLIPS)])
    each = CLIPS // SEGMENTS
    segments = [
        Segment(
            n,
            f"boxes in the {PLACES[n % 8]} part {n}",
            " ".join(line(c, i) + "." for c in clips for i in range(3)),
            tuple(clips),
            CLIPS - 1,
        )
        for n in range(SEGMENTS)
        if (clips := range(n * each, (n + 1) * each))
    ]
    edges = [(n, n + 1, "causes", CLIPS - 1) for n in range(SEGMENTS - 1)]
    add_event_graph(store, PARTY, segments, [*edges, (0, 7, "enables", CLIPS - 1)])
    for number, person in enumerate(PEOPLE):
        name(store, PARTY, number, person, f"<face_{number}>", f"<voice_{number}>")


def restless(request: dict[str, Any]) -> Any:
    """Plans five subtasks, searches something else in every round, and settles nothing."""
    searches = "\n".join(texts_of(request)).count("<card mode")
    where, mode = PLACES[searches % 8], MODES[searches % 4]
    match purpose_of(request):
        case "plan":
            return {"subtasks": [{"text": f"the box of the {p}"} for p in PLACES[:5]]}
        case "act":
            query = f"box {37 * searches} of {PEOPLE[searches % 5]} in the {where}"
            return {"action": "search", "mode": mode, "query": query}
        case "assess":
            return {"resolved": []}
        case "replan":
            return {}
    return {"option": "B", "answer": "a box", "citations": ["m1"], "not_in_memory": False}


def counted(request: dict[str, Any]) -> Answer:
    """The same, with as many tokens as it reads and says."""
    said = Answer(restless(request))
    read = sum(map(len, texts_of(request)))
    return replace(
        said, tokens=(round(read / CHARS_A_TOKEN), round(len(said.text) / CHARS_A_TOKEN))
    )


def asked(store: Store) -> tuple[list[Event], OpenAIServer]:
    events: list[Event] = []
    options = tuple(f"the box of the {place}" for place in PLACES)
    question = Question(text="Which box is opened last?", videos=(PARTY,), options=options)
    with OpenAIServer(counted) as server:
        ask(store, LlmToolbox(server, images=False), question, collect_events(events))
    return events, server


def cards_of(request: dict[str, Any]) -> list[str]:
    """The cards that a request shows, oldest first."""
    return [text for text in texts_of(request) if text.startswith("<card")]


def test_a_round_over_half_an_hour_reads_at_most_seven_thousand_tokens(store: Store) -> None:
    remember(store)
    events, server = asked(store)
    sent = [sum(map(len, texts_of(request))) for request in server.requests]
    rounds = sum(isinstance(event, RoundOpened) for event in events)
    assert isinstance(events[-1], Ended)
    assert rounds >= 6
    assert sum(sent) / CHARS_A_TOKEN / rounds <= MOST
    assert max(sent) / CHARS_A_TOKEN <= 2 * MOST
    *older, newest = cards_of(
        [request for request in server.requests if purpose_of(request) == "act"][-1]
    )
    assert len(older) >= 5
    assert sum(LEFT_OUT in card for card in older) >= 3
    assert LEFT_OUT not in newest
    assert len(newest.split("\n")) > 5
