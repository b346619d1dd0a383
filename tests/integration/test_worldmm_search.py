"""WorldMM's search of captions: by words and options beside the graph, with parts switched off."""

from __future__ import annotations

import pytest

from agent.strategy import ToolUse
from retrieval.result import Retrieval
from store.database import Store
from store.queries.clips import memory_view
from strategies.registry import find_strategy
from strategies.worldmm.settings import MemoryArguments
from tests.support.asking import PARTY, WordToolbox, remember_party
from tests.support.caption_evaluations import build_all
from tests.support.library_templates import FilledLibraries

STRATEGY = find_strategy("worldmm")
QUESTION = "What happens in the house?"
OPTIONS = ("Bob plays a slow song", "The guests wash the plates", "A lion roars")


@pytest.fixture
def party(store: Store, libraries: FilledLibraries) -> Store:
    libraries.fill(store, build_party)
    return store


def build_party(store: Store) -> None:
    """The party, of which the strategy has built its memory."""
    remember_party(store)
    build_all(store, PARTY, STRATEGY)


def searched(store: Store, options: tuple[str, ...], *without: str) -> Retrieval:
    tool = STRATEGY.open_tools(store, WordToolbox())["episodic"]
    with store.begin() as session:
        view = memory_view(session, [PARTY])
    arguments = MemoryArguments(query=QUESTION, options=options)
    return tool(view, arguments, ToolUse(without=frozenset(without)))


def test_the_caption_with_the_words_of_each_option_is_found_and_supports_it(party: Store) -> None:
    found = searched(party, OPTIONS)
    support = {one.ref: one.scores for one in found.weighed}
    texts = {piece.ref: piece.text for piece in found.evidence}
    assert len(support) > len(texts)  # the best captions of all, shown or not
    for number, option in enumerate(OPTIONS[:2]):
        best = max(support, key=lambda ref: support[ref][number])
        assert option in texts[best]
        assert max(support[best]) == support[best][number]
    assert max(scores[2] for scores in support.values()) < min(
        max(scores[n] for scores in support.values()) for n in (0, 1)
    )
    plain = searched(party, ())
    assert plain.weighed == ()
    assert len(plain.evidence) <= 3
    assert len(plain.quotes) == 1
