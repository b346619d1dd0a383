"""A fact that was learned again and again comes before one that was learned once."""

from __future__ import annotations

import pytest

from domain.asking import Question
from domain.settings import Settings
from retrieval.ranking import STRONGEST, RankedLine, add_strength
from retrieval.retrievers import Retrievers
from store.database import Store
from store.queries.clips import memory_view
from store.queries.memories import strengthen
from tests.support.asking import WordToolbox
from tests.support.ranking import rank
from tests.support.remembered import Said, watch

V = "abcdefabcdefabcd"
FACT = "Ann drinks tea in the morning"
ASKED = Question(text="When does Ann drink tea?", videos=(V,))


def ranked(store: Store, as_of_ms: int | None = None) -> list[int]:
    """The clips of the facts, as a question finds them, best first."""
    searcher = Retrievers(store, WordToolbox(), Settings())
    with store.begin() as session:
        view = memory_view(session, [V], as_of_ms)
    return [
        e.clip
        for e in rank(searcher, view, ASKED).evidence
        if e.text == FACT and e.clip is not None
    ]


@pytest.fixture
def facts(store: Store) -> list[int]:
    """Two equal facts, of clips 0 and 1, and clips without any; their ids."""
    watch(store, V, [[Said(FACT)], [Said(FACT)], [Said("rain falls")], [Said("a dog barks")]])
    searcher = Retrievers(store, WordToolbox(), Settings())
    with store.begin() as session:
        view = memory_view(session, [V])
    found = rank(searcher, view, ASKED).evidence
    by_clip = sorted((e.clip or 0, int(e.ref[1:])) for e in found if e.text == FACT)
    return [ref for _, ref in by_clip]


def test_the_weightier_of_two_equal_facts_comes_first(store: Store, facts: list[int]) -> None:
    first, *_ = ranked(store)
    weightier = facts[1 - first]
    with store.begin() as session:
        for clip in (2, 3):
            strengthen(session, [weightier], clip)
    assert ranked(store)[0] == 1 - first


def test_what_was_learned_later_changes_nothing_before(store: Store, facts: list[int]) -> None:
    before = ranked(store, 90_000)
    with store.begin() as session:
        strengthen(session, [facts[1 - before[0]]], 3)
    assert (ranked(store, 90_000), ranked(store)[0]) == (before, 1 - before[0])


def test_no_weight_outdoes_what_is_much_closer() -> None:
    close, far = RankedLine(line=0, cell=0, score=3.0), RankedLine(line=1, cell=1, score=1.5)
    assert add_strength([close, far], {1: 1_000_000}) == [
        close,
        RankedLine(line=1, cell=1, score=1.5 + STRONGEST),
    ]
