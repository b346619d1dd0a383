"""A clip that is remembered late is found at once, also by who has searched the video before."""

from __future__ import annotations

from typing import Any

import pytest

from domain.asking import Mode
from domain.media import ClipState
from domain.memories import MemoryView
from domain.settings import Settings
from retrieval.retrievers import Retrievers
from store.database import Store
from store.queries.clips import mark_clip, memory_view
from store.queries.videos import FAILED, set_video_state
from tests.support.memory import VIDEO, Tools, known_video, memorise, percept, said

WORDS = ("the harbour was rebuilt", "ships brought coffee", "a lighthouse painted green")
TOOLS: Any = Tools()


class SearchTools(Tools):
    """What searching needs besides."""

    reranker = None
    images = None


def watch(store: Store, clip: int) -> None:
    one = percept(clip, utterances=(said(30 * clip + 5, WORDS[clip]),))
    memorise(store, one)


def now(store: Store) -> MemoryView:
    with store.begin() as session:
        return memory_view(session, [VIDEO])


@pytest.fixture
def gap(store: Store) -> Store:
    """Three clips, of which the middle one failed for good."""
    known_video(store, 3)
    watch(store, 0)
    with store.begin() as session:
        mark_clip(session, VIDEO, 1, ClipState.FAILED, "the model was away")
        set_video_state(session, VIDEO, FAILED, "1 clips could not be watched")
    watch(store, 2)
    return store


def found(retrievers: Retrievers, store: Store, query: str) -> list[str]:
    return [one.text for one in retrievers.search(now(store), Mode.VIDEO, query).evidence]


def test_what_came_late_is_found_by_an_index_that_was_read_before(gap: Store) -> None:
    tools: Any = SearchTools()
    retrievers = Retrievers(gap, tools, Settings())
    assert now(gap).scopes[0].last_clip == 2
    assert WORDS[1] not in found(retrievers, gap, "coffee ships")
    watch(gap, 1)
    assert now(gap).scopes[0].last_clip == 2
    assert found(retrievers, gap, "coffee ships")[0] == WORDS[1]
    fresh = Retrievers(gap, tools, Settings())
    for query in ("coffee ships", "green lighthouse", "harbour"):
        assert found(retrievers, gap, query) == found(fresh, gap, query)
