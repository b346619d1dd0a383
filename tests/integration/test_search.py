"""Searching a real store: the four modes, ranking, citing, and never what comes later."""

from __future__ import annotations

import pytest

from domain.asking import Mode, Question
from domain.errors import InputError, NotFound
from domain.settings import Settings
from domain.view import MemoryView, Scope
from memory.retrieval.cite import cite
from memory.retrieval.result import UnknownLabel
from memory.retrieval.retrievers import Retrievers
from store.database import Store
from tests.support.remembered import Event, Said, Tools, film, name, see, watch, weave

V = "0123456789abcdef"
W = "fedcba9876543210"

CLIPS = [
    [Said("We bake an apple cake in the kitchen", 2), Said("Pass me the flour please", 9)],
    [Said("The oven is hot now", 1), Said("Careful with the glass bowl", 20)],
    [Said("Oh no, the glass bowl broke on the floor", 5), Said("Sweep the shards away", 12)],
    [Said("Let us walk the dog in the park", 3), Said("The dog chases a red ball", 15)],
    [Said("The train to Paris leaves at noon", 4), Said("I bought two tickets", 11)],
]
EVENTS = [
    Event(0, "Baking a cake", "An apple cake is baked in the kitchen.", (0, 1), since=4),
    Event(1, "The bowl breaks", "A glass bowl broke and the shards are swept.", (2,), since=4),
    Event(2, "Walk in the park", "The dog is walked in the park.", (3,), since=4),
    Event(3, "Trip to Paris", "Tickets for the train to Paris are bought.", (4,), since=4),
]
EDGES = [(0, 1, "before", 4), (1, 2, "before", 4), (2, 3, "before", 4), (0, 3, "enables", 4)]


@pytest.fixture
def ids(store: Store) -> dict[int, int]:
    watch(store, V, CLIPS)
    return weave(store, V, EVENTS, EDGES)


@pytest.fixture
def retrievers(store: Store) -> Retrievers:
    return Retrievers(store, Tools(), Settings())


def seen(last_clip: int = 4, as_of_ms: int | None = None, video: str = V) -> MemoryView:
    return MemoryView(scopes=(Scope(video=video, last_clip=last_clip),), as_of_ms=as_of_ms)


def texts(found) -> list[str]:
    return [one.text for one in found.evidence]


def test_event_finds_the_segment_with_its_neighbours_in_both_directions(
    retrievers: Retrievers, ids: dict[int, int]
) -> None:
    found = retrievers.search(seen(), Mode.EVENT, "the glass bowl broke")
    assert found.focus is not None
    assert found.focus.label == "The bowl breaks"
    assert {s.label for s in found.neighbours} == {"Baking a cake", "Walk in the park"}
    assert {(e.source, e.target) for e in found.edges} == {(ids[0], ids[1]), (ids[1], ids[2])}
    assert found.evidence[0].ref == f"s{ids[1]}"
    assert found.evidence[0].span.start_ms == 60_000
    assert not found.nothing_close
